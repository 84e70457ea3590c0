/**
 * The expressions of a view: conditions of filters, and values of computed columns.
 *
 * DuckDB's own parser turns an expression into a tree, an allowlist walks the tree, and the printer here writes it back: no character
 * of the user's text reaches a statement that runs.
 *
 * Owns: which expressions are allowed. Does not own: whether their types fit (DuckDB checks that for compile.ts), how text becomes a value of
 * another type (filter-values.ts).
 * Law: everything that is not listed here is rejected. Everything listed takes time in proportion to the values that it reads and returns, and
 * condition-budget.ts bounds what it returns.
 */
import type { Connection } from '#duckdb/database.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { definitionLimits } from '#model/limits.ts'
import { printType } from '#model/types/column-type.ts'
import {
  type Condition,
  type ConditionColumn,
  ConditionError,
  called,
  fixed,
  joined,
  listOf,
  type Node,
  nestedTooDeep,
  objectOf,
  type Part,
  type PartType,
  placeOf,
  quoted,
  writtenAs,
} from './condition.ts'
import { type ConditionBudget, columnSize, constantSize, scalarSize } from './condition-budget.ts'
import { problemWithField } from './envelope-fields.ts'
import { arrowNotAllowed, printCall, refuseText } from './filter-calls.ts'
import { printConstant, textConstant } from './filter-constants.ts'
import { reasonIfChanging } from './filter-functions.ts'
import {
  booleanType,
  elementOf,
  filteredType,
  isList,
  isNumber,
  isScalar,
  kindOf,
  parseCastType,
  textType,
} from './filter-types.ts'
import { PartValues } from './filter-values.ts'
import type { SecretNames } from './secret-names.ts'
import { TextConstants } from './text-constants.ts'

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
  PARAMETER: 'a parameter is not allowed',
  STAR: '* is not allowed: name a column',
  COLLATE: 'COLLATE is not allowed',
  POSITIONAL_REFERENCE: 'a column by its position is not allowed: name the column',
}

export type ExpressionOptions = {
  readonly connection: Connection
  readonly columns: readonly ConditionColumn[]
  /** For all expressions of the view, as the next. */
  readonly budget: ConditionBudget
  readonly secrets: SecretNames
  /** The result of CAST in a row with a value that does not fit. TRY_CAST makes it NULL in any case. */
  readonly failedCast: 'null' | 'error'
  readonly isNew: boolean
  /** The name of the column that is computed: it cannot read itself. */
  readonly own?: string | undefined
}

export type Expression = Part & {
  /** The columns that it names, by index. */
  readonly reads: readonly number[]
  /** The parts of which it is made, by their nodes. */
  readonly parts: ReadonlyMap<Node, Part>
}

/** Throws ConditionError with a message that names the offending part. */
export async function compileExpression(tree: Node, options: ExpressionOptions): Promise<Expression> {
  const constants = new TextConstants()
  const printer = new Printer(options, new PartValues(constants, options))
  const part = printer.print(tree)
  await constants.read(options.connection, definitionLimits.compileTimeoutMs)
  return { ...part, reads: [...printer.reads], parts: printer.parts }
}

class Printer {
  readonly reads = new Set<number>()
  readonly parts = new Map<Node, Part>()
  readonly #columns: readonly ConditionColumn[]
  readonly #values: PartValues
  readonly #budget: ConditionBudget
  readonly #secrets: SecretNames
  readonly #isNew: boolean
  readonly #own: string | undefined

  constructor({ columns, budget, secrets, isNew, own }: ExpressionOptions, values: PartValues) {
    this.#columns = columns
    this.#values = values
    this.#budget = budget
    this.#secrets = secrets
    this.#isNew = isNew
    this.#own = own
  }

  print(node: Node, depth = 0): Part {
    try {
      const part = { ...this.#print(node, depth), at: placeOf(node) }
      this.parts.set(node, part)
      return part
    } catch (error) {
      throw error instanceof ConditionError ? error.in(node) : error
    }
  }

  #print(node: Node, depth: number): Part {
    if (depth > definitionLimits.conditionDepthMax) {
      throw new ConditionError(nestedTooDeep, 'too_expensive')
    }
    const print = (child: unknown): Part => this.print(objectOf(child), depth + 1)
    const printAll = (children: unknown): readonly Part[] => listOf(children).map(print)
    switch (node['class']) {
      case 'COLUMN_REF':
        return this.#column(listOf(node['column_names']).map(String))
      case 'CONSTANT':
        return constantPart(node)
      case 'COMPARISON': {
        const operator = comparisons[String(node['type'])]
        if (operator === undefined) throw new ConditionError(`the comparison ${node['type']} is not allowed`)
        return booleanPart(joined(this.#values.compared([node['left'], node['right']].map(print)), ` ${operator} `))
      }
      case 'CONJUNCTION':
        return booleanPart(
          joined(
            listOf(node['children']).map((child) => this.#condition(child, print)),
            node['type'] === 'CONJUNCTION_AND' ? ' AND ' : ' OR ',
          ),
        )
      case 'BETWEEN': {
        const [input, lower, upper] = this.#values.compared([node['input'], node['lower'], node['upper']].map(print))
        return booleanPart((column) => `(${input?.sql(column)} BETWEEN ${lower?.sql(column)} AND ${upper?.sql(column)})`)
      }
      case 'CASE':
        return this.#case(node, print)
      case 'CAST':
        return this.#cast(node, print)
      case 'OPERATOR':
        if (node['type'] === 'OPERATOR_NOT') return this.#not(node, print)
        return this.#operator(String(node['type']), printAll(node['children']))
      case 'FUNCTION':
        return printCall(node, { print, values: this.#values, budget: this.#budget, secrets: this.#secrets, isNew: this.#isNew })
      case 'LAMBDA':
        // The parser reads j->'a' as one.
        throw new ConditionError(objectOf(node['expr'])['class'] === 'CONSTANT' ? arrowNotAllowed : 'a lambda is not allowed')
      default:
        throw new ConditionError(
          disallowedMessages[String(node['class'])] ?? `${String(node['class']).toLowerCase()} is not allowed`,
        )
    }
  }

  #column(names: readonly string[]): Part {
    const index = names.length === 1 ? columnIndex(this.#columns, names[0] ?? '') : -1
    const { name, type, size } = this.#columns[index] ?? {}
    if (name === undefined) {
      const written = names.join('.')
      throw new ConditionError(reasonIfChanging(written) ?? problemWithField(written) ?? this.#unknown(written), 'unknown_name')
    }
    this.reads.add(index)
    if (type === undefined) return { sql: (column) => column(index), type: 'unknown', size: columnSize('unknown'), column: name }
    const filtered = filteredType(type)
    const sql: Condition = (column) => (filtered === type ? column(index) : `CAST(${column(index)} AS ${printType(filtered)})`)
    return { sql, type: filtered, size: size ?? columnSize(filtered), column: name }
  }

  #unknown(written: string): string {
    const near = nearestName(
      written,
      this.#columns.map(({ name }) => name).filter((name) => name !== this.#own),
    )
    const hint = near === undefined ? '' : `: did you mean ${quoted(near)}?`
    return `${quoted(written)} is not a column of this view${hint}`
  }

  #case(node: Node, print: (child: unknown) => Part): Part {
    const checks = listOf(node['case_checks']).map(objectOf)
    const conditions = checks.map((check) => this.#condition(check['when_expr'], print))
    const results = [...checks.map((check) => check['then_expr']), node['else_expr']].map(print)
    const { parts, type } = this.#values.combined(results)
    const sql: Condition = (column) => {
      const cases = conditions.map((condition, index) => `WHEN ${condition.sql(column)} THEN ${parts[index]?.sql(column)}`)
      return `CASE ${cases.join(' ')} ELSE ${parts.at(-1)?.sql(column)} END`
    }
    return { sql, type, size: this.#budget.sizeOf(type, parts) }
  }

  #cast(node: Node, print: (child: unknown) => Part): Part {
    const type = parseCastType(objectOf(node['cast_type']))
    const text = textConstant(node['child'])
    // The parser writes TRUE as CAST('t' AS BOOLEAN).
    if (isScalar(type, 'BOOLEAN') && (text === 't' || text === 'f')) return booleanPart(fixed(text === 't' ? 'TRUE' : 'FALSE'))
    // The parser makes such a cast of IS TRUE, which alone has no place.
    const isTested = isScalar(type, 'BOOLEAN') && typeof node['query_location'] !== 'number' && text === undefined
    const part = isTested ? this.#condition(node['child'], print) : print(node['child'])
    return this.#values.cast(part, type, node['try_cast'] === true)
  }

  #not(node: Node, print: (child: unknown) => Part): Part {
    const { sql } = this.#condition(listOf(node['children'])[0], print)
    return booleanPart((column) => `(NOT ${sql(column)})`)
  }

  /** Prints a part that is true or false. DuckDB would cast others, and a text that is neither makes the whole condition unknown. */
  #condition(node: unknown, print: (child: unknown) => Part): Part {
    const part = print(node)
    if (this.#isNew) assertCondition(part, objectOf(node))
    return part
  }

  #operator(type: string, children: readonly Part[]): Part {
    const [first = nullPart, ...rest] = children
    switch (type) {
      case 'OPERATOR_IS_NULL':
        return booleanPart((column) => `(${first.sql(column)} IS NULL)`)
      case 'OPERATOR_IS_NOT_NULL':
        return booleanPart((column) => `(${first.sql(column)} IS NOT NULL)`)
      case 'COMPARE_IN':
      case 'COMPARE_NOT_IN': {
        const [sought = nullPart, ...among] = this.#values.compared(children)
        const operator = type === 'COMPARE_IN' ? 'IN' : 'NOT IN'
        return booleanPart((column) => `(${sought.sql(column)} ${operator} ${joined(among, ', ')(column)})`)
      }
      case 'OPERATOR_COALESCE': {
        const { parts, type: combined } = this.#values.combined(children)
        return { sql: called('coalesce', parts), type: combined, size: this.#budget.sizeOf(combined, parts) }
      }
      case 'ARRAY_EXTRACT': {
        // JSON has keys.
        if (this.#isNew && !isScalar(first.type, 'JSON')) for (const each of rest) refuseText('[…]', each)
        const item = itemType(first.type)
        const sql: Condition = (column) => `(${first.sql(column)})[${rest.map((each) => each.sql(column)).join(', ')}]`
        return { sql, type: item, size: this.#budget.sizeOf(item, [first]) }
      }
      default:
        throw new ConditionError(
          type === 'ARRAY_SLICE'
            ? 'a part of a list or text such as [2:3] is not allowed: use substring for text'
            : `the operator ${type.toLowerCase().replace(/^operator_/, '')} is not allowed`,
        )
    }
  }
}

/** Returns -1 if there is no such column. */
export function columnIndex(columns: readonly { readonly name: string }[], name: string): number {
  // User properties of MQTT have a case.
  const exact = columns.findIndex((column) => column.name === name)
  if (exact !== -1 || name.startsWith('$$.')) return exact
  return columns.findIndex((column) => column.name.toLowerCase() === name.toLowerCase())
}

/** Returns the names that an expression has for columns, in no order. */
export function namesIn(tree: unknown): readonly string[] {
  if (typeof tree !== 'object' || tree === null) return []
  const { class: kind, column_names: names } = tree as Node
  if (kind === 'COLUMN_REF' && Array.isArray(names) && names.length === 1) return names.map(String)
  return Object.values(tree).flatMap(namesIn)
}

/** Returns the first place at which an expression names such a column. */
export function referenceTo(tree: unknown, isSought: (name: string) => boolean): Node | undefined {
  if (typeof tree !== 'object' || tree === null) return undefined
  const node = tree as Node
  if (node['class'] === 'COLUMN_REF') return namesIn(node).some(isSought) ? node : undefined
  return Object.values(node)
    .map((child) => referenceTo(child, isSought))
    .find((found) => found !== undefined)
}

function assertCondition(part: Part, node: Node): void {
  const { type } = part
  if (type === 'unknown' || isScalar(type, 'BOOLEAN')) return
  const name = writtenAs(part)
  const instead = isNumber(type)
    ? `${name} <> 0`
    : isList(type)
      ? `len(${name}) > 0`
      : isScalar(type, 'VARCHAR', 'JSON')
        ? `${name} = 'yes', or cast it with CAST(${name} AS BOOLEAN)`
        : `${name} IS NOT NULL`
  const what = part.column === undefined ? kindOf(type) : `${name}, which is ${kindOf(type)},`
  throw new ConditionError(`uses ${what} as a condition: compare it, such as ${instead}`, 'wrong_type').in(node)
}

const nullPart: Part = { sql: fixed('NULL'), type: 'unknown', size: { values: 0, bytes: 0 } }

function booleanPart(sql: Condition): Part {
  return { sql, type: booleanType, size: scalarSize }
}

function constantPart(node: Node): Part {
  const value = objectOf(node['value'])
  const sql = fixed(printConstant(value))
  if (value['is_null'] === true) return nullPart
  const text = textConstant(node)
  if (text !== undefined) return { sql, type: textType, size: constantSize(text), text }
  return { sql, type: typeof value['value'] === 'boolean' ? booleanType : 'number', size: scalarSize }
}

/** The type of an element of a list, or of a character of a text. */
function itemType(type: PartType): PartType {
  return isList(type) ? elementOf(type) : type
}
