/**
 * The computed columns of a view.
 *
 * Owns: which columns an expression reads, the order in which they are computed, whether its type fits. Does not own: what an expression
 * may contain (filter.ts), the statement (extraction.ts).
 * Law: a computed column reads only columns of lower levels, so there are no circles. Its SQL has the type that is stored, and fails in a row
 * in which there is no such value: that is a failed cast.
 */
import type { Connection } from '#duckdb/database.ts'
import { quoteIdentifier } from '#duckdb/quote.ts'
import { errorMessage } from '#lib/error-message.ts'
import { definitionLimits } from '#model/limits.ts'
import { type ColumnType, ColumnTypeError, descriptorOf, parseType, printType, storedType } from '#model/types/column-type.ts'
import type { ColumnPath, CompiledColumn, Computed } from './compiled-view.ts'
import {
  beginOf,
  type Condition,
  type ConditionColumn,
  ConditionError,
  type Node,
  type Part,
  type TextSize,
  writtenAs,
} from './condition.ts'
import type { ConditionBudget } from './condition-budget.ts'
import { fieldOf } from './envelope-fields.ts'
import { columnIndex, compileExpression, type Expression, namesIn, referenceTo } from './filter.ts'
import { parseExpression } from './filter-parse.ts'
import type { SecretNames } from './secret-names.ts'
import { typeProblem } from './type-problem.ts'

/** A column of a definition as far as it could be read. */
export type ReadColumn = Omit<CompiledColumn, 'source' | 'type'> & {
  readonly type: ColumnType | undefined
  /** Undefined if it could not be parsed. */
  readonly source: ColumnPath | { readonly from: 'columns'; readonly tree: Node; readonly text: string } | undefined
}

export async function parseValue(connection: Connection, text: string): Promise<ReadColumn['source']> {
  return { from: 'columns', text, tree: await parseExpression(connection, text, definitionLimits.compileTimeoutMs) }
}

/** Returns the fields of the envelope that the expressions name, as hidden columns. */
export function fieldsIn(trees: readonly Node[], columns: readonly { readonly name: string }[]): readonly ReadColumn[] {
  const names = new Set(trees.flatMap(namesIn).filter((name) => columnIndex(columns, name) === -1))
  return [...names].flatMap((name) => {
    const source = fieldOf(name)
    if (source === undefined) return []
    const type = parseType(typeOfField(source))
    return [{ name, type, source, required: false, castFailures: 'null' as const, hidden: true, parquet: undefined }]
  })
}

function typeOfField(source: NonNullable<ReturnType<typeof fieldOf>>): string {
  if (source.from === 'item_index') return 'BIGINT'
  return source.field === 'ingested_at' ? 'TIMESTAMP' : 'VARCHAR'
}

/** Returns the computed columns by index, so that each comes after those which it reads; none if there is a circle. */
export function orderOfComputed(
  columns: readonly ReadColumn[],
  onProblem: (column: number, error: ConditionError) => void,
): readonly number[] {
  const order: number[] = []
  const visit = (index: number, path: readonly number[]): void => {
    const { source } = columns[index] ?? {}
    if (source?.from !== 'columns' || order.includes(index)) return
    const start = path.indexOf(index)
    if (start !== -1) {
      const circle = [...path.slice(start), index].map((each) => JSON.stringify(columns[each]?.name))
      const next = path[start + 1] ?? index
      const error = new ConditionError(`depends on itself: ${circle.join(' needs ')}`)
      throw new Circle(index, error.in(referenceTo(source.tree, (name) => columnIndex(columns, name) === next)))
    }
    for (const name of new Set(namesIn(source.tree))) visit(columnIndex(columns, name), [...path, index])
    order.push(index)
  }
  for (const index of columns.keys()) {
    try {
      visit(index, [])
    } catch (error) {
      if (!(error instanceof Circle)) throw error
      onProblem(error.column, error.cause)
      return []
    }
  }
  return order
}

class Circle extends Error {
  override readonly name = 'Circle'
  readonly column: number
  override readonly cause: ConditionError

  constructor(column: number, cause: ConditionError) {
    super(cause.message)
    this.column = column
    this.cause = cause
  }
}

export type Compiler = {
  readonly connection: Connection
  readonly budget: ConditionBudget
  readonly secrets: SecretNames
  /** Types are checked only if all columns have one. */
  readonly isTyped: boolean
  /** Whether somebody is writing the definition. */
  readonly isNew: boolean
}

export type CompiledValue = { readonly computed: Computed; readonly size: TextSize }

/** Compiles the expression of a column. `levels` has those of the columns that it reads. Throws ConditionError. */
export async function compileValue(
  { name: own, type }: Pick<ReadColumn, 'name' | 'type'>,
  tree: Node,
  columns: readonly ConditionColumn[],
  levels: readonly number[],
  compiler: Compiler,
): Promise<CompiledValue> {
  const { connection, isTyped } = compiler
  const expression = await compileExpression(tree, { ...compiler, columns, own, failedCast: 'error' })
  const { sql, reads, size } = expression
  const level = 1 + Math.max(0, ...reads.map((index) => levels[index] ?? 0))
  if (level > definitionLimits.computedLevelsMax) {
    throw new ConditionError(`needs other computed columns more than ${definitionLimits.computedLevelsMax} deep`, 'too_expensive')
  }
  if (!isTyped || type === undefined) return { computed: { from: 'columns', sql, reads, level }, size }
  const found = await typeOf(connection, expression, columns, tree)
  try {
    return { computed: { from: 'columns', sql: toStored(sql, found, type), reads, level }, size }
  } catch (error) {
    throw error instanceof ConditionError ? error.of({ at: beginOf(tree) }) : error
  }
}

/** Returns the type of an expression as DuckDB names it, by evaluating it on one row of NULLs. Throws ConditionError with the place. */
export async function typeOf(
  connection: Connection,
  expression: Pick<Expression, 'sql' | 'parts'>,
  columns: readonly ConditionColumn[],
  tree: Node,
): Promise<string> {
  const nulls = columns.map(
    ({ name, type }) =>
      `CAST(NULL AS ${type === undefined ? 'VARCHAR' : printType(storedType(type))}) AS ${quoteIdentifier(name)}`,
  )
  const typeOfSql = async (sql: Condition): Promise<string> => {
    const printed = sql((index) => quoteIdentifier(columns[index]?.name ?? ''))
    const { rows } = await connection.query(`SELECT typeof(${printed}) FROM (SELECT ${nulls.join(', ')})`, {
      timeoutMs: definitionLimits.compileTimeoutMs,
    })
    return String(rows[0]?.[0])
  }
  return typeOfSql(expression.sql).catch(async (error: unknown): Promise<never> => {
    const { node, reason } = await findMisfit(tree, errorMessage(error), expression.parts, typeOfSql)
    const parts = partsWithin(node, expression.parts)
    const { message, argument } = typeProblem(reason, {
      name: node['type'] === 'ARRAY_EXTRACT' ? 'array_extract' : String(node['function_name']),
      arguments: parts.map(([, part]) => writtenAs(part)),
    })
    throw new ConditionError(message, 'wrong_type').in((argument === undefined ? undefined : parts[argument]?.[0]) ?? node)
  })
}

/** Parts that are checked to find the one that DuckDB refuses. */
const CHECKS_MAX = 64

/** Returns the smallest part that DuckDB refuses, and its reason. In a very large expression it may be a larger one. */
async function findMisfit(
  tree: Node,
  reasonOfAll: string,
  parts: Expression['parts'],
  check: (sql: Condition) => Promise<unknown>,
): Promise<{ readonly node: Node; readonly reason: string }> {
  let [node, reason] = [tree, reasonOfAll]
  let left = partsWithin(tree, parts)
  for (let checks = 0; checks < CHECKS_MAX; checks += 1) {
    const [next, ...others] = left
    if (next === undefined) break
    const [child, { sql }] = next
    const problem = await check(sql).then(() => undefined, errorMessage)
    left = problem === undefined ? others : partsWithin(child, parts)
    if (problem !== undefined) [node, reason] = [child, problem]
  }
  return { node, reason }
}

/** Returns the parts of which a part is made. */
function partsWithin(node: unknown, parts: Expression['parts']): readonly (readonly [Node, Part])[] {
  if (typeof node !== 'object' || node === null) return []
  return Object.values(node).flatMap((each: Node) => {
    const part = parts.get(each)
    return part === undefined ? partsWithin(each, parts) : [[each, part] as const]
  })
}

/** Returns the expression in the type that is stored. Throws ConditionError if one of its values may be another than the author meant. */
function toStored(sql: Condition, found: string, type: ColumnType): Condition {
  const printed = printType(type)
  const stored = printType(storedType(type))
  const from = found.includes('"NULL"') ? type : readType(found, printed)
  if (!fits(from, type)) {
    throw new ConditionError(
      `is of type ${printType(from)}, and the column of type ${printed}: write CAST(… AS ${printed}), whose failures follow cast_failures, or change the type`,
      'wrong_type',
    )
  }
  if (type.scalar === 'TIMESTAMPTZ') return (column) => inUtc(sql(column), type.depth)
  const cast: Condition =
    printType(from) === printed && !found.includes('"NULL"') ? sql : (column) => `CAST(${sql(column)} AS ${printed})`
  return stored === printed ? cast : (column) => `CAST(${cast(column)} AS ${stored})`
}

/** A cast would read the instant in the time zone of the session. */
function inUtc(sql: string, depth: number): string {
  if (depth === 0) return `make_timestamptz(epoch_us(CAST(${sql} AS TIMESTAMP)))`
  return `list_transform(${sql}, lambda item_${depth}: ${inUtc(`item_${depth}`, depth - 1)})`
}

function readType(found: string, declared: string): ColumnType {
  try {
    return parseType(found)
  } catch (error) {
    if (!(error instanceof ColumnTypeError)) throw error
    throw new ConditionError(`is of type ${found}, which no column can have; the column is of type ${declared}`, 'wrong_type')
  }
}

/** Whether each value has one meaning in the other type. Numbers that are out of its range fail in their row. */
function fits(from: ColumnType, to: ColumnType): boolean {
  if (from.depth !== to.depth) return false
  if (printType(from) === printType(to)) return true
  if (descriptorOf(from.scalar).isNumber === true && descriptorOf(to.scalar).isNumber === true) return true
  const isInstant = to.scalar === 'TIMESTAMP' || to.scalar === 'TIMESTAMPTZ'
  return isInstant && (from.scalar === 'DATE' || from.scalar === 'TIMESTAMP' || from.scalar === 'TIMESTAMPTZ')
}
