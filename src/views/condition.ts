/** Shared by the parts of the filter compiler: the compiled condition and its parts, the error, and access to DuckDB's tree. */
import type { ExpressionProblem } from '#errors.ts'
import { definitionLimits } from '#model/limits.ts'
import type { ColumnType } from '#model/types/column-type.ts'

/** Returns the SQL of a condition. `column` returns the name of a column in it. */
export type Condition = (column: (index: number) => string) => string

/** The type is undefined if it could not be parsed. A computed column has the size of its expression. */
export type ConditionColumn = {
  readonly name: string
  readonly type: ColumnType | undefined
  readonly size?: TextSize | undefined
}

/** A part of a condition. Its SQL may occur only once in the SQL of another part: otherwise nested parts would grow exponentially. */
export type Part = {
  readonly sql: Condition
  readonly type: PartType
  readonly size: TextSize
  /** The text of a text constant. */
  readonly text?: string
  /** The name of the column that the part is. */
  readonly column?: string
  /** Whether it stands for the elements of the column, which is a list. */
  readonly isElement?: true
  /** Where it is: a byte of the parsed text. */
  readonly at?: number | undefined
}

/** A number has no exact type here. The type of NULL and of an interval is unknown; no other part has an unknown type. */
export type PartType = ColumnType | 'number' | 'unknown'

/** The longest text that a part can be: a multiple of the record's values, and bytes. */
export type TextSize = { readonly values: number; readonly bytes: number }

/** The message continues a sentence about the expression, or names the offending part. */
export class ConditionError extends Error {
  override readonly name = 'ConditionError'
  readonly code: ExpressionProblem
  /** Where the offending part begins: a byte of the parsed text. */
  readonly at: number | undefined

  constructor(message: string, code: ExpressionProblem = 'not_allowed', at?: number) {
    super(message)
    this.code = code
    this.at = at
  }

  /** Returns the error with the place of a node, unless it has one already. */
  in(node: unknown): ConditionError {
    return this.at === undefined ? this.of({ at: placeOf(node) }) : this
  }

  /** Returns the error with the place of a part, unless it has one already. */
  of({ at }: Pick<Part, 'at'>): ConditionError {
    return this.at !== undefined || at === undefined ? this : new ConditionError(this.message, this.code, at)
  }
}

/** Returns where a node is: for an operator its own place, and for a node without one that of the first inside. */
export function placeOf(node: unknown): number | undefined {
  const location = locationOf(node)
  return location === undefined ? beginOf(node) : location - beforeExpression.length
}

/** Returns where the text of a node begins. */
export function beginOf(node: unknown): number | undefined {
  let least = Number.POSITIVE_INFINITY
  const left: unknown[] = [node]
  while (left.length > 0) {
    const next = left.pop()
    if (typeof next !== 'object' || next === null) continue
    least = Math.min(least, locationOf(next) ?? least)
    left.push(...Object.values(next))
  }
  return Number.isFinite(least) ? least - beforeExpression.length : undefined
}

/** The parser has a number beyond 2⁶³ for a node without a place. */
function locationOf(node: unknown): number | undefined {
  const location = typeof node === 'object' && node !== null ? (node as Node)['query_location'] : undefined
  return typeof location === 'number' && Number.isSafeInteger(location) ? location : undefined
}

export const nestedTooDeep = `is nested too deep: at most ${definitionLimits.conditionDepthMax} levels are allowed`

/** Stands before an expression when it is parsed. */
export const beforeExpression = 'SELECT '

/** A node of the tree that DuckDB's parser returns as JSON. */
export type Node = { readonly [key: string]: unknown }

/** A condition without columns. */
export function fixed(sql: string): Condition {
  return () => sql
}

export function joined(parts: readonly Part[], separator: string): Condition {
  return (column) => `(${parts.map(({ sql }) => sql(column)).join(separator)})`
}

export function called(name: string, parts: readonly Part[]): Condition {
  return (column) => `${name}(${parts.map(({ sql }) => sql(column)).join(', ')})`
}

/** Quotes a part of the user's text for an error message. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text)
}

/** The column as the user writes it, or an ellipsis for an expression. */
export function writtenAs({ column }: Part): string {
  return column === undefined ? '…' : quoted(column)
}

/** Throws for text that no statement can have, or that looks like another. */
export function checkCharacters(text: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is rejected
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text) || !text.isWellFormed()) {
    throw new ConditionError('must not contain control characters', 'syntax')
  }
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
