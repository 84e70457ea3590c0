import type { SecretValues } from '#model/secret.ts'
import type { ColumnType } from '#model/types/column-type.ts'
import type { ParquetForm } from '#model/types/file-form.ts'
import type { Condition } from './condition.ts'
import type { Expand, Path } from './json-path.ts'

/** An expression over columns of the view. */
export type Computed = {
  readonly from: 'columns'
  /** SQL for the value in the type that is stored. It fails in a row in which the value cannot be computed. */
  readonly sql: Condition
  /** The columns that it names, by index. */
  readonly reads: readonly number[]
  /** 1 if it names only columns that are read from the record, otherwise one more than the highest level of those that it names. */
  readonly level: number
}

/** A path, and how times that it finds are written if not in ISO 8601. */
export type ColumnPath = Path & { readonly format?: string }

export type CompiledColumn = {
  readonly name: string
  readonly source: ColumnPath | Computed
  readonly type: ColumnType
  readonly required: boolean
  /** A value that cannot be cast to the type becomes NULL, or its row goes to the DLQ. */
  readonly castFailures: 'null' | 'dlq'
  /** Not written. */
  readonly hidden: boolean
  /** The form that the column asks for in Parquet; undefined for the one that every engine reads. */
  readonly parquet: ParquetForm | undefined
}

/** The rules that decide the rows of a view. */
export type ViewRules = {
  /** The columns of the definition, and then the fields of the envelope that expressions name, which are hidden. */
  readonly columns: readonly CompiledColumn[]
  /** All filters joined with AND; undefined if the view has none. */
  readonly condition: Condition | undefined
  /** The array of a record whose elements are rows; undefined if a record is a row. */
  readonly expand?: Expansion | undefined
  /** Undefined if the patterns of its expressions are fast enough for any record. */
  readonly patternBound?: PatternBound | undefined
}

/** Bounds the values that expressions with patterns read: on more bytes, the patterns would take too long. */
export type PatternBound = {
  readonly bytesMax: number
  /** The columns that count, by index. The paths of all read text. */
  readonly reads: readonly number[]
  /** The pattern that takes the longest, as a message names it. */
  readonly slowest: string
}

export type Expansion = Expand & {
  /** How many times the text of a row its expressions may return. */
  readonly textsMade: number
  /** The columns that expressions name, by index. */
  readonly readInExpressions: readonly number[]
}

/** Says which rows are written, where they go, and in which order. Columns are indexes. */
export type Layout = {
  readonly dedupeBy: readonly number[]
  /** How long before a segment others were sealed that its rows are compared with; undefined for none. */
  readonly dedupeWithinMs?: number
  readonly partitionBy: readonly number[]
  readonly sortBy: readonly number[]
  readonly bloomFilters: boolean
}

export type CompiledView = ViewRules & {
  readonly layout: Layout
  /** Names of the secrets that its expressions need. */
  readonly secrets: readonly string[]
  /** The statement that decides the rows, for display. */
  readonly sql: string
}

/** One version of a view, compiled. */
export type NamedView = {
  readonly name: string
  readonly version: number
  readonly compiled: CompiledView
  /** The secrets that it needs, and maybe others. */
  readonly secrets: SecretValues
}
