import type { ColumnType } from '#model/types/column-type.ts'
import type { ParquetForm } from '#model/types/file-form.ts'
import type { Condition } from './condition.ts'
import type { Path } from './json-path.ts'
import type { PatternBudget } from './pattern-budget.ts'

export type CompiledColumn = {
  readonly name: string
  readonly path: Path
  readonly type: ColumnType
  readonly required: boolean
  /** A value that cannot be cast to the type becomes NULL, or its row goes to the DLQ. */
  readonly castFailures: 'null' | 'dlq'
  /** The form that the column asks for in Parquet; undefined for the one that every engine reads. */
  readonly parquet: ParquetForm | undefined
}

/** The rules that decide the rows of a view. */
export type ViewRules = {
  readonly columns: readonly CompiledColumn[]
  /** All filters joined with AND; undefined if the view has none. */
  readonly condition: Condition | undefined
}

export type CompiledView = ViewRules & {
  /** Tells whether the view is too expensive for a record. */
  readonly patterns: PatternBudget
  /** The statement that decides the rows, for display. */
  readonly sql: string
}

/** One version of a view, compiled. */
export type NamedView = { readonly name: string; readonly version: number; readonly compiled: CompiledView }
