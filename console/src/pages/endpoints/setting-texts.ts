/** Settings of an endpoint as a form shows them. */
import type { Endpoint, EndpointChange } from '../../api/endpoints.ts'

const mebibyte = 2 ** 20

export const formats = {
  parquet_views: ['Parquet of views', 'Typed columns, for each view that is bound.'],
  parquet: ['Raw Parquet', 'Every record as it was sent.'],
  segments: ['Segments', 'The log itself, compressed: for your own tools.'],
} as const
export type Format = keyof typeof formats

export const periods = [
  { value: '', label: 'Never: leave files as they are' },
  { value: 'day', label: 'Daily: the files of each day' },
  { value: 'hour', label: 'Hourly: the files of each hour' },
] as const
type Period = (typeof periods)[number]['value']

export const addresses = [
  { value: '', label: 'Do not keep it' },
  { value: 'address_masked', label: 'Keep its network: the last octet, or the last 80 bits, are zero' },
  { value: 'address', label: 'Keep it whole: personal data in many countries' },
] as const
type AddressChoice = (typeof addresses)[number]['value']

export const copyChoices = [
  { value: '1', label: 'On the disk of a node' },
  { value: '2', label: 'On the disk of a node and in its copy store' },
] as const
type CopyChoice = (typeof copyChoices)[number]['value']

export type SettingTexts = ReturnType<typeof textsOf>

export function textsOf({ name, destination_id, compaction, ...endpoint }: Endpoint) {
  return {
    name,
    destination_id: destination_id ?? '',
    segment_max_age_seconds: String(endpoint.segment_max_age_seconds),
    segment_bytes: String(Number((endpoint.segment_bytes / mebibyte).toFixed(2))),
    output_formats: endpoint.output_formats as readonly Format[],
    period: (compaction?.period ?? '') as Period,
    except_views: (compaction?.except_views ?? []).join(', '),
    remove_after_hours: String(compaction?.remove_after_hours ?? ''),
    kept_headers: endpoint.kept_headers.join(', '),
    address: (endpoint.kept_fields.find((field) => field !== 'key_name') ?? '') as AddressChoice,
    keeps_key_name: endpoint.kept_fields.includes('key_name'),
    copies: String(endpoint.copies) as CopyChoice,
  }
}

export function settingsOf(texts: SettingTexts) {
  const { name, destination_id, output_formats, period, except_views, remove_after_hours } = texts
  return {
    name,
    destination_id: destination_id === '' ? null : destination_id,
    segment_max_age_seconds: Number(texts.segment_max_age_seconds),
    segment_bytes: Math.round(Number(texts.segment_bytes) * mebibyte),
    output_formats: (Object.keys(formats) as Format[]).filter((format) => output_formats.includes(format)),
    compaction:
      period === ''
        ? null
        : {
            period,
            except_views: namesIn(except_views),
            remove_after_hours: remove_after_hours === '' ? null : Number(remove_after_hours),
          },
    kept_headers: namesIn(texts.kept_headers),
    kept_fields: [...(texts.address === '' ? [] : [texts.address]), ...(texts.keeps_key_name ? (['key_name'] as const) : [])],
    copies: Number(texts.copies),
  } satisfies EndpointChange
}

/** Returns the settings that differ. */
export function changedSettings<Settings extends object>(before: Settings, after: Settings): Partial<Settings> {
  const isChanged = (name: string) =>
    JSON.stringify(after[name as keyof Settings]) !== JSON.stringify(before[name as keyof Settings])
  return Object.fromEntries(Object.entries(after).filter(([name]) => isChanged(name))) as Partial<Settings>
}

/** Nodes know headers by their names in lower case. */
export function namesIn(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((name) => name !== '')
}
