import type { PartitionValue } from '#model/artifact.ts'
import type { Column } from '#model/definition.ts'
import type { QueriedTable } from '#model/query.ts'
import type { Condition } from './conditions.ts'
import type { StatementProblem } from './error-place.ts'

/** A table as a statement names it. */
export type TableName = {
  /** Empty if the name has one part. */
  readonly schema: string
  readonly table: string
  /** A common table expression has the same name, so the account may have no such table. */
  readonly isOptional: boolean
  /** For each time that the statement reads the table, conditions that the rows meet; undefined if it reads all rows somewhere. */
  readonly conditions?: readonly (readonly Condition[])[] | undefined
}

/** Rows of a file, counted from 0. */
export type RowRange = { readonly first_row: number; readonly rows: number }

export type TableFile = {
  /** The name in the directory. */
  readonly file: string
  /** The rows of the file that are of the table, if others are not. */
  readonly ranges?: readonly RowRange[]
  /** The values of columns that the file does not have. */
  readonly partition: readonly PartitionValue[]
}

/** A table whose files are on disk. */
export type FetchedTable = {
  readonly name: TableName
  /** Parquet files in the directory of the query. */
  readonly files: readonly TableFile[]
  /** Columns of the table, in their order. */
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
