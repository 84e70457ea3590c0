/** Prints calls of functions and operators in a condition. */
import { definitionLimits } from '#model/limits.ts'
import { ConditionError, called, joined, listOf, type Node, objectOf, type Part, type PartType, quoted } from './condition.ts'
import { textConstant } from './filter-constants.ts'
import {
  allowedFunctions,
  expandedSize,
  type FunctionResult,
  type Pattern,
  patternFunctions,
  patternSql,
} from './filter-functions.ts'
import { arithmeticType, booleanType, instantType, isNumber, isScalar, listType, textType } from './filter-types.ts'
import type { PartValues } from './filter-values.ts'

const arithmetic = new Set(['+', '-', '*', '/', '//', '%'])

export type CallContext = {
  readonly print: (node: unknown) => Part
  readonly values: PartValues
}

export function printCall(node: Node, context: CallContext): Part {
  const name = String(node['function_name']).toLowerCase()
  const isPlain =
    (node['schema'] === '' || node['schema'] === 'main') &&
    node['catalog'] === '' &&
    node['distinct'] === false &&
    (node['filter'] ?? null) === null &&
    listOf(objectOf(node['order_bys'] ?? {})['orders'] ?? []).length === 0
  if (!isPlain) throw new ConditionError(`the function ${quoted(name)} must be called plainly, as ${name}(…)`)
  const nodes = listOf(node['children'])
  const pattern = Object.hasOwn(patternFunctions, name) ? patternFunctions[name] : undefined
  if (pattern !== undefined) return printMatch(name, pattern, nodes, context)
  const parts = nodes.map(context.print)
  const isOperator = node['is_operator'] === true
  if (isOperator && arithmetic.has(name)) return printArithmetic(name, parts)
  const result = isOperator ? undefined : allowedFunctions.get(name)
  if (result === undefined) {
    const kind = isOperator ? 'operator' : 'function'
    throw new ConditionError(`the ${kind} ${quoted(name)} is not allowed; docs/views.md lists those that are`)
  }
  return printFunction(name, result, parts, context)
}

function printFunction(name: string, result: FunctionResult, parts: readonly Part[], { values }: CallContext): Part {
  // `position` has a syntax of its own.
  const printed = name === 'position' ? 'strpos' : name
  const part = (type: PartType, given: readonly Part[] = parts): Part => {
    return { sql: called(printed, given), type }
  }
  switch (result) {
    case 'text':
      return part(textType)
    case 'number':
      return part('number')
    case 'boolean':
      return part(booleanType)
    case 'timePart':
      return part('number', withInstant(parts, values))
    case 'time': {
      const given = withInstant(parts, values)
      return part(isScalar(given.at(-1)?.type ?? 'unknown', 'TIMESTAMP', 'DATE') ? instantType : 'unknown', given)
    }
    case 'argument': {
      const { parts: given, type } = values.combined(parts)
      return part(type, given)
    }
    case 'first': {
      const given = values.compared(parts)
      return part(given[0]?.type ?? 'unknown', given)
    }
    case 'list': {
      const { parts: given, type } = values.combined(parts)
      return part(listType(type), given)
    }
    case 'membership': {
      const [list, value, ...others] = parts
      return part(booleanType, list && value && others.length === 0 ? values.member(list, value) : parts)
    }
  }
}

/** Functions of time take it as their last argument. */
function withInstant(parts: readonly Part[], values: PartValues): readonly Part[] {
  return parts.map((part, index) => (index === parts.length - 1 ? values.instant(part) : part))
}

function printArithmetic(name: string, parts: readonly Part[]): Part {
  const type = arithmeticType(parts)
  if (!isNumber(type) && parts.some(({ text }) => text !== undefined)) {
    throw new ConditionError(`${quoted(name)} needs to know the type of a text: cast it, such as CAST('2026-01-01' AS TIMESTAMP)`)
  }
  const [only] = parts
  const sql: Part['sql'] = parts.length === 1 && only ? (column) => `(${name} ${only.sql(column)})` : joined(parts, ` ${name} `)
  return { sql, type }
}

/** LIKE and its kin: patterns are turned into functions that take linear time. */
function printMatch(name: string, kind: Pattern, [text, ...constants]: readonly unknown[], { print }: CallContext): Part {
  const [pattern, escapeNode, ...others] = constants
  const escapeWith = escapeNode === undefined ? undefined : constantOf(name, escapeNode)
  if (text === undefined || pattern === undefined || others.length > 0 || (escapeWith !== undefined && !kind.takesEscape)) {
    throw new ConditionError(`${quoted(name)} takes a text and a pattern`)
  }
  if (escapeWith !== undefined && escapeWith.length > 1) throw new ConditionError('ESCAPE takes one character')
  const printed = kind.syntax === 'like' ? constantOf(name, pattern) : patternOf(name, pattern)
  const subject = print(text)
  return {
    sql: (column) => patternSql(kind, subject.sql(column), printed, escapeWith),
    type: booleanType,
  }
}

/** Returns a regular expression that is not too large. */
function patternOf(name: string, node: unknown): string {
  const pattern = constantOf(name, node)
  if (expandedSize(pattern) <= definitionLimits.regexSizeMax) return pattern
  throw new ConditionError(
    `the pattern of ${quoted(name)} is too large: with its repetitions written out it has more than ${definitionLimits.regexSizeMax} parts`,
  )
}

function constantOf(name: string, node: unknown): string {
  const text = node === undefined ? undefined : textConstant(node)
  if (text === undefined) throw new ConditionError(`the pattern of ${quoted(name)} must be a text constant`)
  if (text.includes('\0')) throw new ConditionError('a text must not contain NUL')
  return text
}
