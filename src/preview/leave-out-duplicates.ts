/**
 * Leaves out rows of samples as `dedupe_by` does in a segment.
 *
 * Law: rows with equal values have equal keys here and in delivery. Types without an order cannot be in a key, and the JSON form of a value of any
 * other type depends on the value alone.
 */
import type { Value } from '#duckdb/database.ts'
import type { CompiledView } from '#views/compiled-view.ts'

type Row = {
  readonly index: number
  readonly values: readonly Value[]
  readonly isWritten: boolean
  readonly isDuplicate: boolean
}

/** Marks rows that have the key of one before them. `decided` is in order. Samples with another `segmentOf` are not compared. */
export function leaveOutDuplicates<R extends Row>(
  { layout: { dedupeBy } }: CompiledView,
  decided: readonly R[],
  segmentOf: (sample: number) => number,
): readonly R[] {
  if (dedupeBy.length === 0) return decided
  const seen = new Set<string>()
  return decided.map((row) => {
    const values = dedupeBy.map((column) => row.values[column] ?? null)
    if (!row.isWritten || values.includes(null)) return row
    const key = JSON.stringify([segmentOf(row.index), ...values])
    if (seen.has(key)) return { ...row, isWritten: false, isDuplicate: true }
    seen.add(key)
    return row
  })
}
