/**
 * The conditions of a view.
 *
 * DuckDB's own parser reads a condition into a tree, an allowlist walks the tree, and the printer here writes it back: no character
 * of the user's text reaches a statement that runs.
 *
 * Owns: which expressions there are. Does not own: whether their types fit (compile.ts asks DuckDB).
 * Law: what is not listed here is refused, and every listed thing takes time in proportion to the value it looks at.
 */
import type { Connection } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { definitionLimits } from '#model/limits.ts'
import { allowedFunctions, expandedSize, type Pattern, patternFunctions, patternSql } from './filter-functions.ts'
import { type ColumnType, parseType, printType, storedType } from './types.ts'

/** Writes the condition with the columns named as the caller says. */
export type Condition = (column: (index: number) => string) => string

export type ParsedCondition = {
  readonly condition: Condition
  /** SQL of the constants that are cast: one that is no value of its type is the author's mistake. */
  readonly constants: readonly string[]
}

/** The type is undefined where it could not be read. */
export type ConditionColumn = { readonly name: string; readonly type: ColumnType | undefined }

export class ConditionError extends Error {
  override readonly name = 'ConditionError'
}

type Node = { readonly [key: string]: unknown }

const comparisons: Readonly<Record<string, string>> = {
  COMPARE_EQUAL: '=',
  COMPARE_NOTEQUAL: '<>',
  COMPARE_LESSTHAN: '<',
  COMPARE_GREATERTHAN: '>',
  COMPARE_LESSTHANOREQUALTO: '<=',
  COMPARE_GREATERTHANOREQUALTO: '>=',
  COMPARE_DISTINCT_FROM: 'IS DISTINCT FROM',
  COMPARE_NOT_DISTINCT_FROM: 'IS NOT DISTINCT FROM',
}
const operators = new Set(['+', '-', '*', '/', '//', '%'])
const refusals: Readonly<Record<string, string>> = {
  SUBQUERY: 'a subquery is not allowed',
  WINDOW: 'a window function is not allowed',
  LAMBDA: 'a lambda is not allowed',
  PARAMETER: 'a parameter is not allowed',
  STAR: '* is not allowed: name a column',
  COLLATE: 'COLLATE is not allowed',
  POSITIONAL_REFERENCE: 'a column by its position is not allowed: name the column',
}

/** Throws ConditionError with a message that names the offending part. */
export async function parseCondition(
  connection: Connection,
  text: string,
  columns: readonly ConditionColumn[],
  timeoutMs: number,
): Promise<ParsedCondition> {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text) || !text.isWellFormed()) {
    throw new ConditionError('must not have control characters')
  }
  const { rows } = await connection.query(`SELECT json_serialize_sql(${quoteLiteral(`SELECT ${text}`)})`, { timeoutMs })
  const parsed = readTree(String(rows[0]?.[0]))
  if (parsed['error'] === true) {
    if (String(parsed['error_message']).includes('Only SELECT')) throw new ConditionError(oneExpression)
    const hint = 'a column whose name is a word of SQL is written in double quotes'
    throw new ConditionError(`cannot be read: ${parsed['error_message']} (${hint})`)
  }
  const printer = new Printer(columns)
  return { condition: printer.print(soleExpression(parsed)), constants: printer.constants }
}

function readTree(json: string): Node {
  try {
    return JSON.parse(json, exact) as Node
  } catch {
    // DuckDB writes a constant such as 1e400 as Infinity, which is no JSON.
    throw new ConditionError('a number is too large')
  }
}

/** A whole number that JavaScript would round is a bigint. */
function exact(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && /^-?\d+$/.test(context?.source ?? '') ? BigInt(context?.source ?? '') : value
}

const oneExpression = "must be one expression over the view's columns, such as amount > 5, and nothing else"

/** The expression, if the statement is `SELECT <expression>` and nothing else at all. */
function soleExpression(parsed: Node): Node {
  const [statement, ...others] = list(parsed['statements'])
  const node = object(object(statement)['node'])
  const [expression, ...more] = list(node['select_list'] ?? [])
  const isBare =
    node['type'] === 'SELECT_NODE' &&
    object(node['from_table'])['type'] === 'EMPTY' &&
    ['where_clause', 'having', 'qualify', 'sample'].every((part) => (node[part] ?? null) === null) &&
    ['modifiers', 'group_expressions', 'group_sets'].every((part) => list(node[part] ?? []).length === 0) &&
    list(object(node['cte_map'])['map'] ?? []).length === 0 &&
    node['aggregate_handling'] === 'STANDARD_HANDLING'
  if (others.length > 0 || more.length > 0 || !isBare || expression === undefined) {
    throw new ConditionError(oneExpression)
  }
  if (object(expression)['alias'] !== '') throw new ConditionError('must not give the expression a name')
  return object(expression)
}

class Printer {
  readonly #columns: readonly ConditionColumn[]
  readonly #constants: string[] = []

  constructor(columns: readonly ConditionColumn[]) {
    this.#columns = columns
  }

  get constants(): readonly string[] {
    return this.#constants
  }

  print(node: Node, depth = 0): Condition {
    if (depth > definitionLimits.conditionDepthMax) {
      throw new ConditionError(`is nested too deep: at most ${definitionLimits.conditionDepthMax} levels`)
    }
    const inner = (child: unknown): Condition => this.print(object(child), depth + 1)
    const all = (children: unknown): readonly Condition[] => list(children).map(inner)
    switch (node['class']) {
      case 'COLUMN_REF':
        return this.#column(list(node['column_names']).map(String))
      case 'CONSTANT':
        return just(constant(object(node['value'])))
      case 'COMPARISON': {
        const operator = comparisons[String(node['type'])]
        if (operator === undefined) throw new ConditionError(`the comparison ${node['type']} is not allowed`)
        return joined(this.#alike([node['left'], node['right']], inner), ` ${operator} `)
      }
      case 'CONJUNCTION':
        return joined(all(node['children']), node['type'] === 'CONJUNCTION_AND' ? ' AND ' : ' OR ')
      case 'BETWEEN': {
        const [input, lower, upper] = this.#alike([node['input'], node['lower'], node['upper']], inner)
        return (column) => `(${input?.(column)} BETWEEN ${lower?.(column)} AND ${upper?.(column)})`
      }
      case 'CASE': {
        const checks = list(node['case_checks']).map((check) => [
          inner(object(check)['when_expr']),
          inner(object(check)['then_expr']),
        ])
        const otherwise = inner(node['else_expr'])
        return (column) =>
          `CASE ${checks.map(([when, then]) => `WHEN ${when?.(column)} THEN ${then?.(column)}`).join(' ')} ELSE ${otherwise(column)} END`
      }
      case 'CAST':
        return this.#cast(node, inner)
      case 'OPERATOR': {
        const isIn = node['type'] === 'COMPARE_IN' || node['type'] === 'COMPARE_NOT_IN'
        return operator(String(node['type']), isIn ? this.#alike(list(node['children']), inner) : all(node['children']))
      }
      case 'FUNCTION':
        return call(node, all)
      default:
        throw new ConditionError(refusals[String(node['class'])] ?? `${String(node['class']).toLowerCase()} is not allowed`)
    }
  }

  #column(names: readonly string[]): Condition {
    const index = this.#indexOf(names)
    if (index === -1) throw new ConditionError(`${shown(names.join('.'))} is no column of this view`)
    const type = this.#columns[index]?.type
    if (type?.scalar !== 'TIMESTAMPTZ') return (column) => column(index)
    return (column) => utc(column(index), printType(type))
  }

  #indexOf(names: readonly string[]): number {
    if (names.length !== 1) return -1
    return this.#columns.findIndex(({ name }) => name.toLowerCase() === names[0]?.toLowerCase())
  }

  /** Things that are compared: a text constant beside a column is a value of the column's type. */
  #alike(nodes: readonly unknown[], inner: (child: unknown) => Condition): readonly Condition[] {
    const column = nodes.map(object).find((node) => node['class'] === 'COLUMN_REF')
    const type = column && this.#columns[this.#indexOf(list(column['column_names']).map(String))]?.type
    const isText = type === undefined || type.scalar === 'VARCHAR' || type.scalar === 'JSON'
    return nodes.map((node) => {
      const printed = inner(node)
      return isText || textConstant(node) === undefined ? printed : this.#castConstant(printed, printType(storedType(type)))
    })
  }

  #cast(node: Node, inner: (child: unknown) => Condition): Condition {
    const type = printType(parseCastType(object(node['cast_type'])))
    const text = textConstant(node['child'])
    // The parser writes TRUE as CAST('t' AS BOOLEAN).
    if (type === 'BOOLEAN' && (text === 't' || text === 'f')) return just(text === 't' ? 'TRUE' : 'FALSE')
    const operand = inner(node['child'])
    if (text !== undefined) return this.#castConstant(operand, type)
    if (type.startsWith('TIMESTAMPTZ')) {
      // DuckDB reads texts in the zone that a text before them names.
      throw new ConditionError(
        'a cast to TIMESTAMPTZ is only allowed of a text constant: cast to TIMESTAMP, or make it the type of a column',
      )
    }
    // In a row, what is no value is a NULL.
    return (column) => `TRY_CAST(${operand(column)} AS ${type})`
  }

  #castConstant(constantSql: Condition, type: string): Condition {
    const value = `CAST(${constantSql(() => '')} AS ${type})`
    const sql = type.startsWith('TIMESTAMPTZ') ? utc(value, type) : value
    this.#constants.push(sql)
    return just(sql)
  }
}

/**
 * What is of TIMESTAMPTZ is the TIMESTAMP in UTC in a condition: DuckDB would read a text that it is compared with in the zone that a text
 * of a row before it names.
 */
function utc(sql: string, type: string): string {
  return `CAST(${sql} AS ${type.replace('TIMESTAMPTZ', 'TIMESTAMP')})`
}

/** The text, if the expression is a text constant. */
function textConstant(node: unknown): string | undefined {
  const { class: kind, value } = object(node)
  if (kind !== 'CONSTANT') return undefined
  const { is_null: isNull, value: text } = object(value)
  return isNull === false && typeof text === 'string' ? text : undefined
}

function operator(type: string, children: readonly Condition[]): Condition {
  const [first = just('NULL'), ...rest] = children
  switch (type) {
    case 'OPERATOR_NOT':
      return (column) => `(NOT ${first(column)})`
    case 'OPERATOR_IS_NULL':
      return (column) => `(${first(column)} IS NULL)`
    case 'OPERATOR_IS_NOT_NULL':
      return (column) => `(${first(column)} IS NOT NULL)`
    case 'COMPARE_IN':
    case 'COMPARE_NOT_IN':
      return (column) =>
        `(${first(column)} ${type === 'COMPARE_IN' ? 'IN' : 'NOT IN'} (${rest.map((child) => child(column)).join(', ')}))`
    case 'OPERATOR_COALESCE':
      return (column) => `coalesce(${children.map((child) => child(column)).join(', ')})`
    case 'ARRAY_EXTRACT':
      return (column) => `(${first(column)})[${rest.map((child) => child(column)).join(', ')}]`
    default:
      throw new ConditionError(`the operator ${type.toLowerCase().replace(/^operator_/, '')} is not allowed`)
  }
}

function call(node: Node, all: (children: unknown) => readonly Condition[]): Condition {
  const name = String(node['function_name']).toLowerCase()
  const isPlain =
    (node['schema'] === '' || node['schema'] === 'main') &&
    node['catalog'] === '' &&
    node['distinct'] === false &&
    (node['filter'] ?? null) === null &&
    list(object(node['order_bys'] ?? {})['orders'] ?? []).length === 0
  if (!isPlain) throw new ConditionError(`the function ${shown(name)} must be called plainly, as ${name}(…)`)
  const pattern = Object.hasOwn(patternFunctions, name) ? patternFunctions[name] : undefined
  if (pattern !== undefined) return match(name, pattern, list(node['children']), all)
  const children = all(node['children'])
  if (node['is_operator'] === true && operators.has(name)) {
    const [only = just('NULL')] = children
    return children.length === 1 ? (column) => `(${name} ${only(column)})` : joined(children, ` ${name} `)
  }
  if (node['is_operator'] === true || !allowedFunctions.has(name)) {
    throw new ConditionError(
      `${node['is_operator'] === true ? 'the operator' : 'the function'} ${shown(name)} is not allowed; docs/views.md lists what is`,
    )
  }
  // `position` has a syntax of its own.
  const printed = name === 'position' ? 'strpos' : name
  return (column) => `${printed}(${children.map((child) => child(column)).join(', ')})`
}

/** LIKE and its kin: only with constant patterns, which are turned into what takes linear time. */
function match(
  name: string,
  kind: Pattern,
  children: readonly unknown[],
  all: (children: unknown) => readonly Condition[],
): Condition {
  const [subject = just('NULL')] = all(children.slice(0, 1))
  const texts = children.slice(1).map((child) => {
    const text = textConstant(child)
    if (text === undefined) throw new ConditionError(`the pattern of ${shown(name)} must be a text constant`)
    return text
  })
  const [pattern = '', escapeWith, ...more] = texts
  if (texts.length === 0 || more.length > 0 || (escapeWith !== undefined && !kind.takesEscape)) {
    throw new ConditionError(`${shown(name)} takes a text and a pattern`)
  }
  if (escapeWith !== undefined && escapeWith.length > 1) throw new ConditionError('ESCAPE takes one character')
  if (kind.syntax !== 'like' && expandedSize(pattern) > definitionLimits.regexSizeMax) {
    throw new ConditionError(
      `the pattern of ${shown(name)} is too large: with its repetitions written out it has more than ${definitionLimits.regexSizeMax} parts`,
    )
  }
  if (texts.some((text) => text.includes('\0'))) throw new ConditionError('a text must not have NUL')
  return (column) => patternSql(kind, subject(column), pattern, escapeWith)
}

function parseCastType(node: Node): ReturnType<typeof parseType> {
  try {
    return parseType(castTypeName(node))
  } catch (error) {
    throw new ConditionError(`a cast to ${shown(castTypeName(node))}: that ${error instanceof Error ? error.message : ''}`)
  }
}

function castTypeName(node: Node): string {
  const details = object(node['type_info'] ?? {})
  switch (node['id']) {
    case 'LIST':
      return `${castTypeName(object(details['child_type']))}[]`
    case 'DECIMAL':
      return typeof details['width'] === 'number' && details['width'] > 0
        ? `DECIMAL(${details['width']},${details['scale']})`
        : 'DECIMAL'
    case 'UNBOUND':
      return `${details['name']}${modifiers(details['user_type_modifiers'])}`
    default:
      return String(node['id'])
  }
}

/** What a type has in parentheses that the parser could make nothing of. */
function modifiers(given: unknown): string {
  const values = Array.isArray(given) ? given.map((each) => String(object(each)['value'])) : []
  return values.length === 0 ? '' : `(${values.join(',')})`
}

/** A constant, from the value that the parser made of it. */
function constant(node: Node): string {
  const { id, type_info: details } = object(node['type']) as { id?: unknown; type_info?: unknown }
  const value = node['value']
  if (node['is_null'] === true) return 'NULL'
  if (id === 'VARCHAR' && typeof value === 'string') {
    if (value.includes('\0')) throw new ConditionError('a text must not have NUL')
    return quoteLiteral(value)
  }
  if (id === 'BOOLEAN') return value === true ? 'TRUE' : 'FALSE'
  if (id === 'DOUBLE' && typeof value === 'number' && Number.isFinite(value)) return `(${value.toExponential()})`
  // A whole double that is large.
  if (id === 'DOUBLE' && typeof value === 'bigint') return `(${Number(value).toExponential()})`
  const whole = wholeNumber(value)
  if (whole === undefined) throw new ConditionError('a constant is of a kind that is not allowed')
  if (id === 'DECIMAL') return decimalText(whole, Number(object(details)['scale']))
  if (id === 'UHUGEINT') throw new ConditionError('a number is too large')
  // The smallest has no literal: it would be the negative of one that is too large.
  if (id === 'HUGEINT') return `CAST('${whole}' AS HUGEINT)`
  return whole < 0n ? `(${whole})` : String(whole)
}

/** Numbers of more than 64 bits are written in two parts. */
function wholeNumber(value: unknown): bigint | undefined {
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return BigInt(value as bigint | number)
  if (typeof value !== 'object' || value === null) return undefined
  const { upper, lower } = value as Node
  const [high, low] = [wholeNumber(upper), wholeNumber(lower)]
  return high === undefined || low === undefined ? undefined : (high << 64n) + low
}

function decimalText(value: bigint, scale: number): string {
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0')
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
  return value < 0n ? `(-${text})` : text
}

function just(sql: string): Condition {
  return () => sql
}

function joined(children: readonly Condition[], between: string): Condition {
  return (column) => `(${children.map((child) => child(column)).join(between)})`
}

function shown(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text)
}

function object(value: unknown): Node {
  if (typeof value !== 'object' || value === null) throw new ConditionError('has a form that is not known')
  return value as Node
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new ConditionError('has a form that is not known')
  return value
}
