/**
 * The conditions of a view.
 *
 * DuckDB's own parser turns a condition into a tree, an allowlist walks the tree, and the printer here writes it back: no character
 * of the user's text reaches a statement that runs.
 *
 * Owns: which expressions are allowed. Does not own: whether their types fit (DuckDB checks that for compile.ts).
 * Law: everything that is not listed here is rejected. Everything listed takes time in proportion to the value that it reads.
 */
import type { Connection } from '#duckdb/database.ts'
import { definitionLimits } from '#model/limits.ts'
import { type ColumnType, descriptorOf, printType, storedType } from '#model/types/column-type.ts'
import {
  type Condition,
  type ConditionColumn,
  ConditionError,
  fixed,
  joined,
  listOf,
  type Node,
  objectOf,
  quoted,
} from './condition.ts'
import { printCall } from './filter-calls.ts'
import { printConstant, textConstant } from './filter-constants.ts'
import { parseExpression } from './filter-parse.ts'
import { asFiltered, parseCastType } from './filter-types.ts'

export type ParsedCondition = {
  readonly condition: Condition
  /** SQL for the constants that are cast, so that a constant that is not a value of its type can be reported to the author. */
  readonly constants: readonly string[]
}

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

const disallowedMessages: Readonly<Record<string, string>> = {
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
  const expression = await parseExpression(connection, text, timeoutMs)
  const printer = new Printer(columns)
  return { condition: printer.print(expression), constants: printer.constants }
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
      throw new ConditionError(`is nested too deep: at most ${definitionLimits.conditionDepthMax} levels are allowed`)
    }
    const print = (child: unknown): Condition => this.print(objectOf(child), depth + 1)
    const printAll = (children: unknown): readonly Condition[] => listOf(children).map(print)
    switch (node['class']) {
      case 'COLUMN_REF':
        return this.#column(listOf(node['column_names']).map(String))
      case 'CONSTANT':
        return fixed(printConstant(objectOf(node['value'])))
      case 'COMPARISON': {
        const operator = comparisons[String(node['type'])]
        if (operator === undefined) throw new ConditionError(`the comparison ${node['type']} is not allowed`)
        return joined(this.#compared([node['left'], node['right']], print), ` ${operator} `)
      }
      case 'CONJUNCTION':
        return joined(printAll(node['children']), node['type'] === 'CONJUNCTION_AND' ? ' AND ' : ' OR ')
      case 'BETWEEN': {
        const [input, lower, upper] = this.#compared([node['input'], node['lower'], node['upper']], print)
        return (column) => `(${input?.(column)} BETWEEN ${lower?.(column)} AND ${upper?.(column)})`
      }
      case 'CASE': {
        const checks = listOf(node['case_checks']).map((check) => [
          print(objectOf(check)['when_expr']),
          print(objectOf(check)['then_expr']),
        ])
        const otherwise = print(node['else_expr'])
        return (column) =>
          `CASE ${checks.map(([when, then]) => `WHEN ${when?.(column)} THEN ${then?.(column)}`).join(' ')} ELSE ${otherwise(column)} END`
      }
      case 'CAST':
        return this.#cast(node, print)
      case 'OPERATOR': {
        const isIn = node['type'] === 'COMPARE_IN' || node['type'] === 'COMPARE_NOT_IN'
        const children = isIn ? this.#compared(listOf(node['children']), print) : printAll(node['children'])
        return printOperator(String(node['type']), children)
      }
      case 'FUNCTION':
        return printCall(node, printAll)
      default:
        throw new ConditionError(
          disallowedMessages[String(node['class'])] ?? `${String(node['class']).toLowerCase()} is not allowed`,
        )
    }
  }

  #column(names: readonly string[]): Condition {
    const index = this.#indexOf(names)
    if (index === -1) throw new ConditionError(`${quoted(names.join('.'))} is not a column of this view`)
    const type = this.#columns[index]?.type
    return (column) => (type === undefined ? column(index) : asFiltered(column(index), type))
  }

  #indexOf(names: readonly string[]): number {
    if (names.length !== 1) return -1
    return this.#columns.findIndex(({ name }) => name.toLowerCase() === names[0]?.toLowerCase())
  }

  /** Prints expressions that are compared: a text constant beside a column is a value of the column's type. */
  #compared(nodes: readonly unknown[], print: (child: unknown) => Condition): readonly Condition[] {
    const column = nodes.map(objectOf).find((node) => node['class'] === 'COLUMN_REF')
    const type = column && this.#columns[this.#indexOf(listOf(column['column_names']).map(String))]?.type
    const constantType = type === undefined || descriptorOf(type.scalar).acceptsAnyText ? undefined : storedType(type)
    return nodes.map((node) => {
      const printed = print(node)
      if (constantType === undefined || textConstant(node) === undefined) return printed
      return this.#castConstant(printed, constantType)
    })
  }

  #cast(node: Node, print: (child: unknown) => Condition): Condition {
    const type = parseCastType(objectOf(node['cast_type']))
    const printed = printType(type)
    const text = textConstant(node['child'])
    // The parser writes TRUE as CAST('t' AS BOOLEAN).
    if (printed === 'BOOLEAN' && (text === 't' || text === 'f')) return fixed(text === 't' ? 'TRUE' : 'FALSE')
    const operand = print(node['child'])
    if (text !== undefined) return this.#castConstant(operand, type)
    const { filteredAs } = descriptorOf(type.scalar)
    if (filteredAs !== undefined) {
      // DuckDB reads texts in the zone that a text before them names.
      throw new ConditionError(
        `only a text constant may be cast to ${type.scalar}: cast to ${filteredAs}, or make ${type.scalar} the type of a column`,
      )
    }
    // In a row, a value that cannot be cast is NULL.
    return (column) => `TRY_CAST(${operand(column)} AS ${printed})`
  }

  #castConstant(constant: Condition, type: ColumnType): Condition {
    const sql = asFiltered(`CAST(${constant(() => '')} AS ${printType(type)})`, type)
    this.#constants.push(sql)
    return fixed(sql)
  }
}

function printOperator(type: string, children: readonly Condition[]): Condition {
  const [first = fixed('NULL'), ...rest] = children
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
