/** Shows to people what a changed definition makes of stored records. */
import type { Schemas } from '#client/generated/schema.ts'
import { countNoun } from '#lib/count-noun.ts'
import { toTable } from '../terminal/table.ts'
import { printable } from './kinds/problems.ts'

type Comparison = Schemas['ViewComparison']
type Side = Schemas['ComparedSide']
type Column = Schemas['ComparedColumn']
type Sample = Pick<
  Column['samples'][number],
  'endpoint_id' | 'segment_seq' | 'record_index' | 'record' | 'record_base64' | 'is_cut'
> & { readonly item_index?: number | null }

/** Characters of a record and of a value that are shown. */
const shownMax = 160

const outcomes: Readonly<Record<Schemas['OutcomeChange']['before'], string>> = {
  accepted: 'accepted',
  dropped: 'dropped',
  dlq: 'dead letter',
}

const droppedBy: Readonly<Record<Schemas['RowChange']['samples'][number]['dropped_by'], string>> = {
  filter: 'a filter',
  duplicate: 'a duplicate',
  no_element: 'no element',
}

const bounds: Readonly<Record<Comparison['bounded_by'][number], string>> = {
  endpoints: 'more endpoints than are read',
  files: 'more files than are read',
  bytes: 'more bytes than are read',
  records: 'more records than are read',
  rows: 'more rows than are compared',
  time: 'no time for more',
  raw_parquet: 'segments without raw Parquet',
  unread_files: 'files that cannot be read',
}

const unread: Readonly<Record<Comparison['unread_files'][number]['reason'], string>> = {
  gone: 'no longer in the bucket',
  destination_deleted: 'of a destination that was deleted',
  damaged: 'damaged',
}

/** Returns lines. They end in a line break. */
export function describeComparison(comparison: Comparison): string {
  const { view_name, before, after, is_same, records_read } = comparison
  const parts = [
    [`view ${printable(view_name)}: version ${before.version} → ${nameOf(after)}`, ...describeSample(comparison)],
    records_read === 0 ? [] : tableOf(countsOf(before, after)),
    describeMatching(comparison),
    describeWindow(comparison),
    describeColumns(comparison.columns),
    ...describeOutcomes(comparison),
    ...describeRows(comparison),
    ...describeValues(comparison),
    is_same && records_read > 0 ? ['Both make the same of every record that was read.'] : [],
  ]
  return parts
    .filter(({ length }) => length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')
    .concat('\n')
}

function nameOf({ version }: Side): string {
  return version === null ? 'the changed definition' : `version ${version}`
}

function describeSample(comparison: Comparison): readonly string[] {
  const { records_read, records_stored, since, bounded_by, unread_files, endpoints } = comparison
  const why = bounded_by.length === 0 ? '' : ` (${bounded_by.map((bound) => bounds[bound]).join(', ')})`
  const read = `${records_read} of the ${countNoun(records_stored, 'record')} delivered since ${since} were read${why}`
  const missing = unread_files.map(({ reason, files }) => `left out: ${countNoun(files, 'file')} ${unread[reason]}`)
  if (endpoints.length < 2)
    return [read, ...missing, ...endpoints.map(({ endpoint_name }) => `endpoint ${printable(endpoint_name)}`)]
  const each = endpoints.map((endpoint) => {
    const { endpoint_name, records_read: own, records_stored: all } = endpoint
    return `endpoint ${printable(endpoint_name)}: ${own} of ${all}`
  })
  return [read, ...missing, ...each]
}

function describeMatching({ matched_by, before, after }: Comparison): readonly string[] {
  if (matched_by !== null) return []
  const rows = ({ expand }: Side) =>
    expand === null ? 'a row for each record' : `a row for each element of ${printable(expand)}`
  return [`Values are not compared: before there was ${rows(before)}, and after there is ${rows(after)}.`]
}

function describeWindow({ before, after }: Comparison): readonly string[] {
  const window = after.dedupe_within ?? before.dedupe_within
  if (window === null) return []
  return [
    `dedupe_within (${window}) is not applied: rows are compared with those of their segment, so delivery may leave out more.`,
  ]
}

function countsOf(before: Side, after: Side): readonly (readonly string[])[] {
  const row = (title: string, one: number, other: number) => [title, String(one), String(other), difference(one, other)]
  const reasons = new Map<string, readonly [number, number]>()
  const nameOfReason = ({ error_code, column }: Side['dead_letters'][number]) =>
    column === null ? error_code : `${error_code} ${printable(column)}`
  for (const each of before.dead_letters) reasons.set(nameOfReason(each), [each.records, 0])
  for (const each of after.dead_letters) {
    const name = nameOfReason(each)
    reasons.set(name, [reasons.get(name)?.[0] ?? 0, each.records])
  }
  return [
    ['', 'before', 'after', ''],
    row('rows', before.rows, after.rows),
    ...(before.duplicates + after.duplicates === 0 ? [] : [row('duplicate rows', before.duplicates, after.duplicates)]),
    row('dropped', before.dropped, after.dropped),
    row('dead letters', before.dlq, after.dlq),
    ...[...reasons].map(([name, [one, other]]) => row(`  ${name}`, one, other)),
    row('became NULL', before.cast_nulls, after.cast_nulls),
  ]
}

function difference(before: number, after: number): string {
  if (before === after) return ''
  return after > before ? `+${after - before}` : String(after - before)
}

function tableOf(rows: readonly (readonly string[])[]): readonly string[] {
  return toTable(rows).trimEnd().split('\n')
}

function describeColumns(columns: readonly Column[]): readonly string[] {
  const rows = columns.flatMap((column) => {
    const said = describeColumn(column)
    return said === undefined ? [] : [said]
  })
  return rows.length === 0 ? [] : tableOf(rows)
}

function describeColumn({ name, before, after, values_differ }: Column): readonly string[] | undefined {
  const shown = printable(name)
  if (before === null) return ['+', shown, `new, ${after?.type}, NULL in ${after?.null_rate_pct} %`]
  if (after === null) return ['-', shown, `lost, ${before.type}, was NULL in ${before.null_rate_pct} %`]
  const parts = [
    ...(before.type === after.type ? [] : [`${before.type} → ${after.type}`]),
    ...(before.null_rate_pct === after.null_rate_pct ? [] : [`NULL in ${before.null_rate_pct} % → ${after.null_rate_pct} %`]),
    ...(values_differ ? [`another value in ${countNoun(values_differ, 'row')}`] : []),
  ]
  return parts.length === 0 ? undefined : ['~', shown, parts.join(', ')]
}

function describeOutcomes({ outcome_changes, endpoints }: Comparison): readonly (readonly string[])[] {
  return outcome_changes.map(({ before, after, records, samples }) => [
    `${countNoun(records, 'record')}: ${outcomes[before]} → ${outcomes[after]}`,
    ...samples.flatMap((sample) => {
      const { message } = sample.reason_after ?? sample.reason_before ?? {}
      return describeRecord(sample, endpoints, message ?? (sample.dropped_by === null ? '' : droppedBy[sample.dropped_by]))
    }),
  ])
}

function describeRows({ row_changes, endpoints }: Comparison): readonly (readonly string[])[] {
  return row_changes.map(({ change, rows, samples }) => [
    `${countNoun(rows, 'row')} of accepted records: ${change === 'lost' ? 'only before' : 'only after'}`,
    ...samples.flatMap((sample) => describeRecord(sample, endpoints, droppedBy[sample.dropped_by])),
  ])
}

function describeValues({ columns, endpoints }: Comparison): readonly (readonly string[])[] {
  return columns
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, values_differ, samples }) => [
      `${printable(name)}: another value in ${countNoun(values_differ ?? 0, 'row')}`,
      ...samples.flatMap((sample) =>
        describeRecord(sample, endpoints, `${show(sample.value_before)} → ${show(sample.value_after)}`),
      ),
    ])
}

function describeRecord(sample: Sample, endpoints: Comparison['endpoints'], said: string): readonly string[] {
  const { endpoint_id, segment_seq, record_index, record, record_base64 } = sample
  const endpoint = endpoints.find((each) => each.endpoint_id === endpoint_id)?.endpoint_name ?? endpoint_id
  const item = sample.item_index == null ? '' : `, element ${sample.item_index}`
  const text = record ?? `base64 ${record_base64}`
  return [
    `  ${printable(endpoint)} segment ${segment_seq}, record ${record_index}${item}${said === '' ? '' : `: ${cut(said)}`}`,
    `    ${cut(text)}`,
  ]
}

function show(value: unknown): string {
  return value === null ? 'NULL' : JSON.stringify(value)
}

function cut(text: string): string {
  const shown = printable(text)
  return shown.length > shownMax ? `${shown.slice(0, shownMax).toWellFormed()}…` : shown
}
