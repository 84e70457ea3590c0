/** Prints calls of functions and operators in a condition. */
import { quoteLiteral } from '#duckdb/quote.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { definitionLimits } from '#model/limits.ts'
import {
  ConditionError,
  called,
  joined,
  listOf,
  type Node,
  objectOf,
  type Part,
  type PartType,
  placeOf,
  quoted,
} from './condition.ts'
import { type ConditionBudget, castSize, scalarSize, sizeOfList, sizeOfReplaced, sumSizes } from './condition-budget.ts'
import { integerConstant, textConstant } from './filter-constants.ts'
import {
  allowedFunctions,
  type FunctionResult,
  matcherOf,
  matchSql,
  type Pattern,
  patternFunctions,
  reasonIfChanging,
  searchFunctions,
} from './filter-functions.ts'
import {
  arithmeticType,
  booleanType,
  instantType,
  intervalNotAllowed,
  isList,
  isNumber,
  isScalar,
  listType,
  textType,
} from './filter-types.ts'
import type { PartValues } from './filter-values.ts'
import { ownFunctions } from './own-functions.ts'
import { countGroups, matchesBytes, patternSize, searchSize } from './pattern-size.ts'
import type { SecretNames } from './secret-names.ts'

export const arrowNotAllowed =
  'a part of JSON is not read with -> here: add a column with its path, such as $.doc.a, hidden if it is not to be written, and name that'

/** The parser makes such calls of INTERVAL 1 DAY. */
const makesInterval =
  /^to_(?:(?:micro|milli)?second|minute|hour|day|week|month|quarter|year|decade)s$|^to_(?:centuries|millennia)$/

const arithmetic = new Set(['+', '-', '*', '/', '//', '%'])

export type CallContext = {
  readonly print: (node: unknown) => Part
  readonly values: PartValues
  readonly budget: ConditionBudget
  readonly secrets: SecretNames
  /** Whether somebody is writing the definition. */
  readonly isNew: boolean
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
  if (pattern !== undefined) return printMatch(pattern, nodes, context)
  if (name === 'regexp_extract') return printExtract(nodes, context)
  const parts = nodes.map(context.print)
  const isOperator = node['is_operator'] === true
  if (isOperator && arithmetic.has(name)) return printArithmetic(name, parts)
  if (isOperator && name === '||') return printJoined(parts, joined(parts, ' || '), context)
  const own = isOperator ? undefined : ownFunctions.get(name)
  if (own !== undefined && !isEpochOfTime(name, parts)) return own({ name, parts, nodes, ...context })
  const result = isOperator ? undefined : allowedFunctions.get(name)
  if (isOperator && (name === '->' || name === '->>')) throw new ConditionError(arrowNotAllowed)
  if (result === undefined) {
    if (makesInterval.test(name)) throw new ConditionError(intervalNotAllowed)
    const kind = isOperator ? 'operator' : 'function'
    throw new ConditionError(
      reasonIfChanging(name) ?? `the ${kind} ${quoted(name)} is not allowed; ${hintAt(name)}docs/views.md lists those that are`,
      'unknown_name',
    )
  }
  // An empty list is a call, too.
  if (parts.length === 0 && name !== 'list_value')
    throw new ConditionError(`${quoted(name)} needs a value: write ${name}(…)`, 'wrong_type')
  if (context.isNew && (name === 'date_trunc' || name === 'date_part')) checkUnit(name, parts, context.values)
  if (context.isNew && numberFrom.has(name)) for (const part of parts.slice(numberFrom.get(name))) refuseText(quoted(name), part)
  countSearch(name, parts, context)
  if (name === 'concat') return printJoined(parts, called(name, parts), context)
  if (name === 'replace') return printReplaced(parts, context)
  return printFunction(name, result, parts, context)
}

/** From which argument on functions take numbers. */
const numberFrom: ReadonlyMap<string, number> = new Map(
  ['left', 'right', 'substring', 'substr', 'round'].map((name) => [name, name === 'round' ? 0 : 1]),
)

/** DuckDB takes a text constant for any type, and each row that meets it is then NULL, or fails. */
export function refuseText(what: string, part: Part): void {
  if (part.text !== undefined)
    throw new ConditionError(`${what} takes a number here, not the text ${quoted(part.text)}`, 'wrong_type').of(part)
}

/** A unit that is not constant could fail in any row, and DuckDB looks at a constant one only where it meets a time. */
function checkUnit(name: string, [unit, time]: readonly Part[], values: PartValues): void {
  if (unit === undefined || time === undefined) return
  const { text } = unit
  if (text === undefined) throw new ConditionError(`the unit of ${quoted(name)} must be a text constant, such as 'day'`).of(unit)
  const type = isScalar(time.type, 'DATE') ? 'DATE' : 'TIMESTAMP'
  values.check({
    at: unit.at,
    sql: `SELECT ${name}(${quoteLiteral(text)}, ${type} '2000-01-01')`,
    problemWith: () => undefined,
    failed: () => `${quoted(text)} is not a unit of time: write one such as 'year', 'month', 'week', 'day' or 'hour'`,
  })
}

function hintAt(name: string): string {
  const near = nearestName(name, [...allowedFunctions.keys()])
  return near === undefined ? '' : `did you mean ${quoted(near)}? `
}

function printFunction(name: string, result: FunctionResult, parts: readonly Part[], { values, budget }: CallContext): Part {
  // `position` has a syntax of its own.
  const printed = name === 'position' ? 'strpos' : name
  const part = (type: PartType, given: readonly Part[] = parts): Part => {
    return { sql: called(printed, given), type, size: budget.sizeOf(type, given) }
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
      return { sql: called(printed, given), type: listType(type), size: budget.add(sizeOfList(given)) }
    }
    case 'membership': {
      const [list, value, ...others] = parts
      return part(booleanType, list && value && others.length === 0 ? values.member(list, value) : parts)
    }
  }
}

/** `epoch_ms` makes a number of a time, and a time of a number. */
function isEpochOfTime(name: string, [only]: readonly Part[]): boolean {
  if (name !== 'epoch_ms' || only === undefined) return false
  return only.text !== undefined || only.type === 'unknown' || isScalar(only.type, 'TIMESTAMP', 'DATE', 'TIME')
}

/** Functions of time take it as their last argument. */
function withInstant(parts: readonly Part[], values: PartValues): readonly Part[] {
  return parts.map((part, index) => (index === parts.length - 1 ? values.instant(part) : part))
}

/** Functions that look for one text in another take time in proportion to both, multiplied. */
function countSearch(name: string, [text, sought]: readonly Part[], { budget }: CallContext): void {
  if (!searchFunctions.has(name) || text === undefined || sought === undefined || isList(text.type)) return
  budget.patterns.countSearch(name, text.size, sought.size)
}

function printArithmetic(name: string, parts: readonly Part[]): Part {
  const type = arithmeticType(parts)
  const constant = parts.find((part) => part.text !== undefined)
  if (!isNumber(type) && constant !== undefined) {
    throw new ConditionError(
      `${quoted(name)} needs to know the type of a text: cast it, such as CAST('2026-01-01' AS TIMESTAMP)`,
      'wrong_type',
    ).of(constant)
  }
  const text = parts.find((part) => isScalar(part.type, 'VARCHAR', 'JSON'))
  if (text !== undefined) {
    const column = text.column === undefined ? '…' : quoted(text.column)
    throw new ConditionError(
      `${quoted(name)} needs numbers, not text or JSON: cast it, such as CAST(${column} AS DOUBLE)`,
      'wrong_type',
    ).of(text)
  }
  if (
    name === '-' &&
    parts.length === 2 &&
    parts.every((part) => isScalar(part.type, 'TIMESTAMP', 'DATE')) &&
    type === 'unknown'
  ) {
    throw new ConditionError(
      'the difference of two timestamps is an interval, which is not allowed: subtract seconds, as in epoch(a) - epoch(b)',
      'wrong_type',
    )
  }
  const [only] = parts
  const sql: Part['sql'] = parts.length === 1 && only ? (column) => `(${name} ${only.sql(column)})` : joined(parts, ` ${name} `)
  return { sql, type, size: scalarSize }
}

function printJoined(parts: readonly Part[], sql: Part['sql'], { budget }: CallContext): Part {
  const list = parts.find(({ type }) => isList(type))
  if (list !== undefined) throw new ConditionError('|| and concat join texts, not lists', 'wrong_type').of(list)
  const type = parts.find((part) => isScalar(part.type, 'BLOB'))?.type ?? textType
  // Bytes become text, unless all parts are bytes.
  return { sql, type, size: budget.add(sumSizes(parts.map((part) => ({ size: castSize(part, textType) })))) }
}

function printReplaced(parts: readonly Part[], { budget }: CallContext): Part {
  const [text, removed, inserted, ...others] = parts
  if (text === undefined || removed === undefined || inserted === undefined || others.length > 0) {
    const message = "replace takes a text, the part to replace, and the new text, such as replace(code, '-', '')"
    throw new ConditionError(message, 'wrong_type').of({ at: others[0]?.at })
  }
  if (inserted.text === undefined) throw new ConditionError('the new text of replace must be a text constant').of(inserted)
  const size = budget.add(sizeOfReplaced(text.size, removed.text, inserted.text))
  return { sql: called('replace', parts), type: textType, size }
}

function printExtract(nodes: readonly unknown[], { print, values, budget }: CallContext): Part {
  const [text, pattern, group, ...others] = nodes
  const printedPattern = constantOf('"regexp_extract"', pattern)
  const size = sizeOfPattern('"regexp_extract"', printedPattern, pattern)
  const number = group === undefined ? 0n : integerConstant(group)
  if (others.length > 0 || number === undefined || number < 0n || number > 9n) {
    throw new ConditionError(`"regexp_extract" takes a text, a pattern, and the number of a group from 0 to 9`).in(group)
  }
  const groups = countGroups(printedPattern)
  if (number > groups) throw new ConditionError(`the pattern of "regexp_extract" has ${groups} groups, not ${number}`).in(group)
  values.checkPattern(printedPattern, placeOf(pattern))
  const subject = print(text)
  budget.patterns.countPattern(printedPattern, size, subject.size)
  const sql: Part['sql'] = (column) => `regexp_extract(${subject.sql(column)}, ${quoteLiteral(printedPattern)}, ${number})`
  return { sql, type: textType, size: budget.sizeOf(textType, [subject]) }
}

/** LIKE and its kin: patterns are turned into functions that take linear time. */
function printMatch(kind: Pattern, [text, ...constants]: readonly unknown[], { print, values, budget }: CallContext): Part {
  const [pattern, escapeNode, ...others] = constants
  const escapeWith = escapeNode === undefined ? undefined : constantOf(kind.written, escapeNode)
  if (text === undefined || pattern === undefined || others.length > 0 || (escapeWith !== undefined && !kind.takesEscape)) {
    throw new ConditionError(`${kind.written} takes a text and a pattern`)
  }
  if (escapeWith !== undefined && escapeWith.length > 1) throw new ConditionError('ESCAPE takes one character').in(escapeNode)
  const printed = constantOf(kind.written, pattern)
  const matcher = matcherOf(kind, printed, escapeWith)
  const size = 'like' in matcher ? searchSize(printed) : sizeOfPattern(kind.written, matcher.regex, pattern)
  if (kind.syntax !== 'like') values.checkPattern(printed, placeOf(pattern))
  const subject = print(text)
  budget.patterns.countPattern(printed, size, subject.size)
  return {
    sql: (column) => matchSql(kind, subject.sql(column), matcher),
    type: booleanType,
    size: scalarSize,
  }
}

/** Throws if the pattern is too large. */
function sizeOfPattern(name: string, pattern: string, node: unknown): number {
  if (matchesBytes(pattern)) {
    throw new ConditionError(`the pattern of ${name} has \\C, which matches a part of a character: write . for a whole one`).in(
      node,
    )
  }
  const size = patternSize(pattern)
  if (size <= definitionLimits.patternSizeMax) return size
  throw new ConditionError(
    `the pattern of ${name} is too large: with its repetitions written out its size is ${size}, and at most ${definitionLimits.patternSizeMax} is allowed; repeat less, or match less at once`,
    'too_expensive',
  ).in(node)
}

function constantOf(name: string, node: unknown): string {
  const text = node === undefined ? undefined : textConstant(node)
  if (text === undefined) throw new ConditionError(`the pattern of ${name} must be a text constant`).in(node)
  if (text.includes('\0')) throw new ConditionError('a text must not contain NUL').in(node)
  return text
}
