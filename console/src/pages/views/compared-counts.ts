/** Words and figures of a comparison on stored records. */
import type { ComparedColumn, ComparedSide, OutcomeChange, RowChange, ViewComparison } from '../../api/view-comparisons.ts'
import { formatCount } from '../../design/format.ts'

export type CountRow = {
  readonly name: string
  readonly before: number
  readonly after: number
  /** Whether more of it is worse. */
  readonly isLoss: boolean
}

/** Returns the counts of both sides, and dead letters by reason. */
export function countRows(before: ComparedSide, after: ComparedSide): readonly CountRow[] {
  const reasons = new Map<string, { before: number; after: number }>()
  for (const [side, { dead_letters }] of [['before', before] as const, ['after', after] as const]) {
    for (const { error_code, column, records } of dead_letters) {
      const name = column === null ? error_code : `${error_code}: ${column}`
      const counts = reasons.get(name) ?? { before: 0, after: 0 }
      counts[side] = records
      reasons.set(name, counts)
    }
  }
  return [
    { name: 'Rows', before: before.rows, after: after.rows, isLoss: false },
    ...(before.duplicates + after.duplicates === 0
      ? []
      : [{ name: 'Duplicate rows', before: before.duplicates, after: after.duplicates, isLoss: false }]),
    { name: 'Dropped', before: before.dropped, after: after.dropped, isLoss: false },
    { name: 'Dead letters', before: before.dlq, after: after.dlq, isLoss: true },
    ...[...reasons].map(([name, counts]) => ({ name: `– ${name}`, ...counts, isLoss: true })),
    { name: 'Values that became NULL', before: before.cast_nulls, after: after.cast_nulls, isLoss: true },
  ]
}

/** Returns `+3`, `−3`, or an empty text. */
export function signed(difference: number): string {
  if (difference === 0) return ''
  return difference > 0 ? `+${formatCount(difference)}` : `−${formatCount(-difference)}`
}

export type ColumnState = 'new' | 'lost' | 'changed' | 'same'

export function stateOf({ before, after, values_differ }: ComparedColumn): ColumnState {
  if (before === null) return 'new'
  if (after === null) return 'lost'
  const isSame = before.type === after.type && before.nulls === after.nulls && !values_differ
  return isSame ? 'same' : 'changed'
}

const outcomes: Readonly<Record<OutcomeChange['before'], string>> = {
  accepted: 'a row',
  dropped: 'dropped',
  dlq: 'a dead letter',
}

/** Such as `3 records: a row before, a dead letter now`. */
export function titleOfChange({ before, after, records }: OutcomeChange): string {
  return `${countRecords(records)}: ${outcomes[before]} before, ${outcomes[after]} now`
}

export function countRecords(records: number): string {
  return count(records, 'record')
}

export function countOfRows(rows: number): string {
  return count(rows, 'row')
}

function count(things: number, noun: string): string {
  return `${formatCount(things)} ${noun}${things === 1 ? '' : 's'}`
}

/** Such as `3 rows of accepted records: only before`. */
export function titleOfRowChange({ change, rows }: RowChange): string {
  return `${countOfRows(rows)} of accepted records: only ${change === 'lost' ? 'before' : 'now'}`
}

const reasons: Readonly<Record<RowChange['samples'][number]['dropped_by'], string>> = {
  filter: 'a filter',
  duplicate: 'a duplicate',
  no_element: 'no element',
}

export function reasonOfDrop(reason: RowChange['samples'][number]['dropped_by'] | null): string {
  return reason === null ? '' : reasons[reason]
}

/** Says why values are not compared; undefined if they are. */
export function aboutMatching({ matched_by, before, after }: ViewComparison): string | undefined {
  if (matched_by !== null) return undefined
  const rows = ({ expand }: ComparedSide) => (expand === null ? 'each record' : `each element of ${expand}`)
  return `Before, ${rows(before)} is a row, and now ${rows(after)}: their rows cannot be matched. Counts and records are compared.`
}

/** Says that a window is not applied; undefined if there is none. */
export function aboutWindow({ before, after }: ViewComparison): string | undefined {
  const window = after.dedupe_within ?? before.dedupe_within
  if (window === null) return undefined
  return `dedupe_within (${window}) is not applied here: rows are compared with those of their segment, so delivery may leave out more.`
}

const bounds: Readonly<Record<ViewComparison['bounded_by'][number], string>> = {
  endpoints: 'there are more endpoints than are read',
  files: 'there are more files than are read',
  bytes: 'the files are larger than what is read',
  records: 'there are more records than are read',
  rows: 'there are more rows than are compared',
  time: 'the time was over',
  raw_parquet: 'some segments have no raw Parquet',
  unread_files: 'some files cannot be read',
}

const unread: Readonly<Record<ViewComparison['unread_files'][number]['reason'], string>> = {
  gone: 'no longer in the bucket',
  destination_deleted: 'of a destination that was deleted',
  damaged: 'damaged',
}

/** Says which files were left out, such as `2 files no longer in the bucket`; undefined if none was. */
export function aboutUnread({ unread_files }: ViewComparison): string | undefined {
  if (unread_files.length === 0) return undefined
  return unread_files.map(({ reason, files }) => `${count(files, 'file')} ${unread[reason]}`).join(', ')
}

/** Says how much of the day was read, and why not all. */
export function aboutSample({ records_read, records_stored, is_complete, bounded_by }: ViewComparison): string {
  if (records_stored === 0) return 'Nothing was delivered in the last 24 hours.'
  if (is_complete) return `All ${countRecords(records_stored)} of the last 24 hours were read.`
  const why = bounded_by.map((bound) => bounds[bound]).join(', and ')
  return `The newest ${countRecords(records_read)} of ${formatCount(records_stored)} of the last 24 hours were read: ${why}.`
}
