import { quoteIdentifier } from '#duckdb/quote.ts'
import { assert } from '#lib/assert.ts'
import type { PartitionValue } from '#model/artifact.ts'
import { inFile } from '#model/types/file-form.ts'
import type { ViewQuality } from '#model/view-quality.ts'
import type { CompiledView, NamedView } from '#views/compiled-view.ts'
import { type Extraction, extractionSql } from '#views/extraction.ts'
import type { Piece } from './pieces.ts'

/** Counts of records. Law: processed = accepted + dropped + dlq. A view that fails as a whole has no such counts. */
export type RowCounts = {
  readonly processed: number
  readonly accepted: number
  readonly dropped: number
  readonly dlq: number
  /** Rows that are written: for a view that expands no array, the accepted records. */
  readonly rows: number
  /** Rows that are not written because another one has their key. Records without another row are dropped. */
  readonly duplicates: number
  readonly castNulls: number
  /** DLQ rows by error code. */
  readonly errors: Readonly<Record<string, number>>
  readonly lastError: { readonly code: string; readonly message: string } | undefined
}

/** Views whose rows can be written. */
export type ExtractedViews = {
  readonly views: readonly NamedView[]
  /** Names of the values, by position and column. */
  readonly values: Extraction['values']
  /** The position of each view among those in the statement; undefined for one that expands an array, which is extracted while it is written. */
  readonly positions: readonly (number | undefined)[]
  /** Returns the statement for the rows. */
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

/** `position` is that of the view in the extraction of its rows. */
export type RowsOfView = {
  readonly view: NamedView
  readonly values: readonly string[]
  readonly rows: () => string
  readonly position: number
}

/** Returns the rows of one of the views. */
export function rowsOf({ views, values, positions, rows }: ExtractedViews, view: number): RowsOfView {
  const named = views[view]
  const position = positions[view]
  assert(named !== undefined && position !== undefined, 'the view must be one of the extracted views')
  return { view: named, values: values[position] ?? [], rows, position }
}

/** SQL for the rows of a view that meet the condition, in the types of its file. `more` is SQL for further columns. */
export function acceptedSql({ view, values, rows }: RowsOfView, condition: string, more: readonly string[] = []): string {
  const columns = view.compiled.columns.flatMap(({ name, type, parquet, hidden }, index) =>
    hidden ? [] : [`${inFile(values[index] ?? '', type, parquet)} AS ${quoteIdentifier(name)}`],
  )
  return `SELECT ${[...columns, ...more].join(', ')} FROM (${rows()}) WHERE ${condition}`
}
