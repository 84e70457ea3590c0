/** Facts about the sender that an endpoint keeps with a record, chosen by the account. None by default: they may be personal data. */
import { z } from 'zod'
import type { Definition } from './definition.ts'

export const KeptField = z.enum(['address', 'address_masked', 'key_name'])
export type KeptField = z.infer<typeof KeptField>

export const KeptFields = z
  .array(KeptField)
  .refine((fields) => new Set(fields).size === fields.length, 'must not name a field twice')
  .refine(
    (fields) => !(fields.includes('address') && fields.includes('address_masked')),
    'must name address or address_masked, not both: a masked address is to replace the whole one',
  )
  .meta({
    description:
      'what is kept of the sender of each record: the `address` of the client, or only its network (`address_masked`: the last octet of IPv4 and the last 80 bits of IPv6 are zero), both as `$$.address` in views, and the name of the API key (`key_name`, `$$.key_name`). An address is personal data in many countries',
    examples: [['address_masked', 'key_name']],
    uniqueItems: true,
  })

export type Kept = { readonly kept_fields: readonly string[]; readonly kept_headers: readonly string[] }

const factPattern = /\$\$\.(?:(address|key_name)\b|headers(?:\.(?:([\w-]+)|"([^"]+)")|\[\s*(?:'([^']+)'|"([^"]+)")\s*\]))/g

/** Returns a warning for each fact that a definition reads and the endpoint does not keep. `view` begins its sentence. */
export function factsNotKept(view: string, { columns, filters = [] }: Definition, kept: Kept): readonly string[] {
  const texts = [...columns.map(({ path, value }) => path ?? value ?? ''), ...filters.map(({ condition }) => condition)]
  const found = new Map<string, string>()
  for (const [, field, ...names] of texts.flatMap((text) => [...text.matchAll(factPattern)])) {
    // Names of headers have no case.
    const header = names.find((name) => name !== undefined)?.toLowerCase()
    const choices = field === undefined ? [header ?? ''] : choicesFor(field)
    const [setting, read] =
      field === undefined ? (['kept_headers', `headers.${header}`] as const) : (['kept_fields', field] as const)
    if (!choices.some((name) => kept[setting].includes(name))) found.set(read, `${choices.join(' or ')} to ${setting}`)
  }
  return [...found]
    .toSorted()
    .map(
      ([read, what]) =>
        `${view} reads $$.${read}, which this endpoint does not keep, so it is NULL: add ${what} with PATCH /v1/endpoints/{id}`,
    )
}

function choicesFor(field: string): readonly string[] {
  return field === 'address' ? ['address_masked', 'address'] : [field]
}
