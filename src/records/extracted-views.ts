import { quoteIdentifier } from '#duckdb/quote.ts'
import type { PartitionValue } from '#model/artifact.ts'
import { inFile } from '#model/types/file-form.ts'
import type { ViewQuality } from '#model/view-quality.ts'
import type { CompiledView, NamedView } from '#views/compiled-view.ts'
import { type Extraction, extractionSql } from '#views/extraction.ts'
import type { Piece } from './pieces.ts'

/** Law: processed = accepted + dropped + dlq. A view that fails as a whole has no such counts. */
export type RowCounts = {
  readonly processed: number
  readonly accepted: number
  readonly dropped: number
  readonly dlq: number
  readonly castNulls: number
  /** DLQ rows by error code. */
  readonly errors: Readonly<Record<string, number>>
  readonly lastError: { readonly code: string; readonly message: string } | undefined
}

/** Views whose rows can be written. */
export type ExtractedViews = {
  readonly views: readonly NamedView[]
  /** Names of the values, by view and column. */
  readonly values: Extraction['values']
  /** Returns the statement for the rows of all views. */
  readonly rows: () => string
}

/** A file with accepted rows. `partition` has their values in the columns of `partition_by`. */
export type RowFile = { readonly path: string; readonly rows: number; readonly partition?: readonly PartitionValue[] }

/** The outcome of one view for all records of the segment. */
export type DecidedView = {
  readonly counts: RowCounts
  readonly quality: ViewQuality
  /** The files with the accepted rows. */
  readonly files: readonly RowFile[]
  readonly dlqSqlOf: (pieces: readonly Piece[]) => string
}

export function valuesOf(compiled: readonly CompiledView[]): ExtractedViews['values'] {
  return extractionSql(compiled, { guarded: true, records: 'records' }).values
}

/** SQL for the rows of one view that meet the condition, in the types of its file. `more` is SQL for further columns. */
export function acceptedSql(
  { views, values, rows }: ExtractedViews,
  view: number,
  condition: string,
  more: readonly string[] = [],
): string {
  const names = views[view]?.compiled.columns ?? []
  const columns = names.flatMap(({ name, type, parquet, hidden }, index) =>
    hidden ? [] : [`${inFile(values[view]?.[index] ?? '', type, parquet)} AS ${quoteIdentifier(name)}`],
  )
  return `SELECT ${[...columns, ...more].join(', ')} FROM (${rows()}) WHERE ${condition}`
}
