/** Shared by the parts of the filter compiler: the compiled condition, the error, and access to DuckDB's tree. */
import type { ColumnType } from '#model/types/column-type.ts'

/** Returns the SQL of a condition. `column` returns the name of a column in it. */
export type Condition = (column: (index: number) => string) => string

/** The type is undefined if it could not be parsed. */
export type ConditionColumn = { readonly name: string; readonly type: ColumnType | undefined }

/** The message continues a sentence about the condition, or names the offending part. */
export class ConditionError extends Error {
  override readonly name = 'ConditionError'
}

/** A node of the tree that DuckDB's parser returns as JSON. */
export type Node = { readonly [key: string]: unknown }

/** A condition without columns. */
export function fixed(sql: string): Condition {
  return () => sql
}

export function joined(children: readonly Condition[], separator: string): Condition {
  return (column) => `(${children.map((child) => child(column)).join(separator)})`
}

/** Quotes a part of the user's text for an error message. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text)
}

export function objectOf(value: unknown): Node {
  if (typeof value !== 'object' || value === null) throw new ConditionError(unknownShape)
  return value as Node
}

export function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new ConditionError(unknownShape)
  return value
}

const unknownShape = 'has a form that is not supported'
