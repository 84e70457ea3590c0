/**
 * How good the data of a view is: what its columns got, and what no column takes.
 *
 * Owns: how what several segments had is added up. Does not own: how one segment's is found out (records/), how it is kept (store/).
 * Law: adding up is exact and its order doesn't matter. Minimum and maximum are compared by their type, never as doubles but where
 * the type is one.
 */
import { z } from 'zod'
import { qualityLimits } from './limits.ts'
import { orderOfPrinted } from './types/column-type.ts'
import { byBytes, type ValueOrder } from './types/orders.ts'

/** The kinds of JSON values, with whole numbers apart. */
export const JsonKind = z.enum(['boolean', 'integer', 'number', 'string', 'object', 'array'])
export type JsonKind = z.infer<typeof JsonKind>

export const ColumnQuality = z.object({
  name: z.string(),
  type: z.string(),
  /** Of the rows that were accepted: those with a value, and those with NULL. */
  values: z.int().min(0),
  nulls: z.int().min(0),
  /** Values that became NULL because their cast failed, in rows that are accepted or that the filters leave unknown. */
  cast_nulls: z.int().min(0),
  /** DLQ rows whose error is of this column: its cast failed, or it is required and missing. */
  cast_dlq: z.int().min(0),
  missing: z.int().min(0),
  /** Of the rows that were accepted, in canonical text; null where there is no value, or no order. */
  min: z.string().nullable(),
  max: z.string().nullable(),
})
export type ColumnQuality = z.infer<typeof ColumnQuality>

export const SeenPath = z.object({
  path: z.string(),
  types: z.array(JsonKind),
  /** Of those sampled, the records that have a value there. */
  records: z.int().min(0),
})
export type SeenPath = z.infer<typeof SeenPath>

/** Of one view and one segment. */
export const ViewQuality = z.object({
  columns: z.array(ColumnQuality),
  /** Records of the segment that were looked at for paths. */
  sampled_records: z.int().min(0),
  /** Paths that no column takes, the most frequent first. */
  unmapped: z.array(SeenPath),
})
export type ViewQuality = z.infer<typeof ViewQuality>

/** Of many segments. */
export type QualitySum = {
  readonly columns: readonly ColumnQuality[]
  readonly sampled_records: number
  readonly unmapped: readonly UnmappedSum[]
}
export type UnmappedSum = SeenPath & { readonly last_seen_at: string }

export const noQuality: QualitySum = { columns: [], sampled_records: 0, unmapped: [] }

/** What a segment had that was committed at `last_seen_at`. */
export function toSum({ columns, sampled_records, unmapped }: ViewQuality, last_seen_at: string): QualitySum {
  return { columns, sampled_records, unmapped: unmapped.map((path) => ({ ...path, last_seen_at })) }
}

/** Of one view version, so with the same columns; where one has none the other's are taken. */
export function addQualities(sums: readonly QualitySum[]): QualitySum {
  return {
    columns: sums.reduce<readonly ColumnQuality[]>((all, { columns }) => addColumns(all, columns), []),
    sampled_records: sums.reduce((all, { sampled_records }) => all + sampled_records, 0),
    unmapped: addPaths(sums.flatMap(({ unmapped }) => unmapped)),
  }
}

function addColumns(one: readonly ColumnQuality[], other: readonly ColumnQuality[]): readonly ColumnQuality[] {
  if (one.length === 0) return other
  const byName = new Map(other.map((column) => [column.name, column]))
  return one.map((column) => {
    const more = byName.get(column.name)
    return more === undefined || more.type !== column.type ? column : addColumn(column, more)
  })
}

function addColumn(one: ColumnQuality, other: ColumnQuality): ColumnQuality {
  const { name, type } = one
  const order = orderOfPrinted(type) ?? byBytes
  return {
    name,
    type,
    values: one.values + other.values,
    nulls: one.nulls + other.nulls,
    cast_nulls: one.cast_nulls + other.cast_nulls,
    cast_dlq: one.cast_dlq + other.cast_dlq,
    missing: one.missing + other.missing,
    min: extreme(order, one.min, other.min, -1),
    max: extreme(order, one.max, other.max, 1),
  }
}

/** Returns the smaller (-1) or the larger (1) of two canonical texts; null means that there is none. */
export function extreme({ compare }: ValueOrder, one: string | null, other: string | null, sign: -1 | 1): string | null {
  if (one === null || other === null) return one ?? other
  return compare(other, one) * sign > 0 ? other : one
}

/** The most frequent, as many as are kept. */
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
    records: one.records + other.records,
    last_seen_at: [one.last_seen_at, other.last_seen_at].toSorted().at(-1) ?? '',
  }
}

export function byFrequency(one: SeenPath, other: SeenPath): number {
  return other.records - one.records || (one.path < other.path ? -1 : 1)
}
