import type { Column } from '#model/definition.ts'
import type { QueriedTable } from '#model/query.ts'
import type { StatementProblem } from './error-place.ts'

/** A table as a statement names it. */
export type TableName = {
  /** Empty if the name has one part. */
  readonly schema: string
  readonly table: string
  /** A common table expression has the same name, so the account may have no such table. */
  readonly isOptional: boolean
}

/** Rows of a file, counted from 0. */
export type RowRange = { readonly first_row: number; readonly rows: number }

/** A table whose files are on disk. */
export type FetchedTable = {
  readonly name: TableName
  /** Names of Parquet files in the directory of the query. */
  readonly files: readonly string[]
  /** Rows of other Parquet files there, which have rows that are not of the table too. */
  readonly parts?: readonly { readonly file: string; readonly ranges: readonly RowRange[] }[]
  /** Columns of the table if it has no files. */
  readonly columns: readonly Pick<Column, 'name' | 'type' | 'parquet'>[]
  readonly summary: QueriedTable
}

/** Message to a query process. */
export type QueryTask =
  /** Finds the tables that a statement names. */
  | { readonly inspect: string }
  /** Runs a statement. The directory is relative to that of the process. */
  | { readonly run: string; readonly directory: string; readonly tables: readonly FetchedTable[]; readonly maxRows: number }

/** Its reply. */
export type QueryReply =
  | { readonly tables: readonly TableName[] }
  /** The body of the response: JSON. */
  | { readonly json: Uint8Array }
  /** The statement is refused, or failed. The message is for the caller. */
  | { readonly rejected: StatementProblem }
  /** An unexpected error. */
  | { readonly crashed: string }
