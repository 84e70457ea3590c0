/**
 * Data quality of a view: the values of its columns, and the paths that no column reads.
 *
 * Owns: adding up the quality of several segments. Does not own: measuring one segment (records/), storage (store/).
 * Law: sums are exact and do not depend on their order. Minimum and maximum are compared by type; only floating point types are
 * compared as doubles.
 */
import { z } from 'zod'
import { safeSum } from '#lib/safe-sum.ts'
import { boundedList } from './bounded-list.ts'
import { definitionLimits, qualityLimits, reportedTextMax } from './limits.ts'
import { ReportedCount } from './reported-count.ts'
import { orderOfPrinted } from './types/column-type.ts'
import { byBytes, type ValueOrder } from './types/orders.ts'

/** Types of JSON values, with whole numbers as a separate type. */
export const JsonKind = z.enum(['boolean', 'integer', 'number', 'string', 'object', 'array'])
export type JsonKind = z.infer<typeof JsonKind>

export const ColumnQuality = z.object({
  name: z.string().max(reportedTextMax),
  type: z.string().max(reportedTextMax),
  /** Accepted rows with a value, and with NULL; 0 for a hidden column. */
  values: ReportedCount,
  nulls: ReportedCount,
  /** Values that became NULL because their cast failed, in rows that were accepted or whose filter is unknown. */
  cast_nulls: ReportedCount,
  /** DLQ rows whose error names this column: its cast failed, or it is required and missing. */
  cast_dlq: ReportedCount,
  missing: ReportedCount,
  /** Over the accepted rows, as canonical text; null if there is no value or the type has no order. */
  min: z.string().max(reportedTextMax).nullable(),
  max: z.string().max(reportedTextMax).nullable(),
})
export type ColumnQuality = z.infer<typeof ColumnQuality>

export const SeenPath = z.object({
  path: z.string().max(reportedTextMax),
  types: z.array(JsonKind).max(JsonKind.options.length),
  /** Sampled records with a value at the path. */
  records: ReportedCount,
})
export type SeenPath = z.infer<typeof SeenPath>

/** Quality of one view in one segment. */
export const ViewQuality = z.object({
  columns: boundedList(ColumnQuality, definitionLimits.columnsMax),
  /** Records of the segment whose paths were read. */
  sampled_records: ReportedCount,
  /** Paths that no column reads, the most frequent first. */
  unmapped: boundedList(SeenPath, qualityLimits.pathsMax),
})
export type ViewQuality = z.infer<typeof ViewQuality>

/** Quality over many segments. */
export type QualitySum = {
  readonly columns: readonly ColumnQuality[]
  readonly sampled_records: number
  readonly unmapped: readonly UnmappedSum[]
}
export type UnmappedSum = SeenPath & { readonly last_seen_at: string }

export const noQuality: QualitySum = { columns: [], sampled_records: 0, unmapped: [] }

/** Converts the quality of a segment that was committed at `last_seen_at`. */
export function toSum({ columns, sampled_records, unmapped }: ViewQuality, last_seen_at: string): QualitySum {
  return { columns, sampled_records, unmapped: unmapped.map((path) => ({ ...path, last_seen_at })) }
}

/** Adds up qualities of one view version. Hidden columns are only in those of segments in which they failed. */
export function addQualities(sums: readonly QualitySum[]): QualitySum {
  return {
    columns: sums.reduce<readonly ColumnQuality[]>((all, { columns }) => addColumns(all, columns), []),
    sampled_records: safeSum(sums.map(({ sampled_records }) => sampled_records)),
    unmapped: addPaths(sums.flatMap(({ unmapped }) => unmapped)),
  }
}

function addColumns(one: readonly ColumnQuality[], other: readonly ColumnQuality[]): readonly ColumnQuality[] {
  if (one.length === 0) return other
  const byName = new Map(other.map((column) => [column.name, column]))
  const known = new Set(one.map(({ name }) => name))
  const sums = one.map((column) => {
    const more = byName.get(column.name)
    return more === undefined || more.type !== column.type ? column : addColumn(column, more)
  })
  return [...sums, ...other.filter(({ name }) => !known.has(name))]
}

function addColumn(one: ColumnQuality, other: ColumnQuality): ColumnQuality {
  const { name, type } = one
  const order = orderOfPrinted(type) ?? byBytes
  return {
    name,
    type,
    values: safeSum([one.values, other.values]),
    nulls: safeSum([one.nulls, other.nulls]),
    cast_nulls: safeSum([one.cast_nulls, other.cast_nulls]),
    cast_dlq: safeSum([one.cast_dlq, other.cast_dlq]),
    missing: safeSum([one.missing, other.missing]),
    min: extreme(order, one.min, other.min, -1),
    max: extreme(order, one.max, other.max, 1),
  }
}

/** Returns the smaller (-1) or the larger (1) of two canonical texts. Null stands for no value. */
export function extreme({ compare }: ValueOrder, one: string | null, other: string | null, sign: -1 | 1): string | null {
  if (one === null || other === null) return one ?? other
  return compare(other, one) * sign > 0 ? other : one
}

/** Adds up paths and keeps the most frequent. */
function addPaths(paths: readonly UnmappedSum[]): readonly UnmappedSum[] {
  const sums = new Map<string, UnmappedSum>()
  for (const seen of paths) {
    const sum = sums.get(seen.path)
    sums.set(seen.path, sum === undefined ? seen : addPath(sum, seen))
  }
  return [...sums.values()].toSorted(byFrequency).slice(0, qualityLimits.pathsKeptMax)
}

function addPath(one: UnmappedSum, other: UnmappedSum): UnmappedSum {
  return {
    path: one.path,
    types: JsonKind.options.filter((type) => one.types.includes(type) || other.types.includes(type)),
    records: safeSum([one.records, other.records]),
    last_seen_at: [one.last_seen_at, other.last_seen_at].toSorted().at(-1) ?? '',
  }
}

export function byFrequency(one: SeenPath, other: SeenPath): number {
  return other.records - one.records || (one.path < other.path ? -1 : 1)
}
