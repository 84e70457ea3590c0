/** Prints calls of functions and operators in a condition. */
import { definitionLimits } from '#model/limits.ts'
import { type Condition, ConditionError, fixed, joined, listOf, type Node, objectOf, quoted } from './condition.ts'
import { textConstant } from './filter-constants.ts'
import { allowedFunctions, expandedSize, type Pattern, patternFunctions, patternSql } from './filter-functions.ts'

const arithmetic = new Set(['+', '-', '*', '/', '//', '%'])

/** `printAll` prints the arguments. */
export function printCall(node: Node, printAll: (children: unknown) => readonly Condition[]): Condition {
  const name = String(node['function_name']).toLowerCase()
  const isPlain =
    (node['schema'] === '' || node['schema'] === 'main') &&
    node['catalog'] === '' &&
    node['distinct'] === false &&
    (node['filter'] ?? null) === null &&
    listOf(objectOf(node['order_bys'] ?? {})['orders'] ?? []).length === 0
  if (!isPlain) throw new ConditionError(`the function ${quoted(name)} must be called plainly, as ${name}(…)`)
  const pattern = Object.hasOwn(patternFunctions, name) ? patternFunctions[name] : undefined
  if (pattern !== undefined) return printMatch(name, pattern, listOf(node['children']), printAll)
  const children = printAll(node['children'])
  const isOperator = node['is_operator'] === true
  if (isOperator && arithmetic.has(name)) {
    const [only = fixed('NULL')] = children
    return children.length === 1 ? (column) => `(${name} ${only(column)})` : joined(children, ` ${name} `)
  }
  if (isOperator || !allowedFunctions.has(name)) {
    const kind = isOperator ? 'operator' : 'function'
    throw new ConditionError(`the ${kind} ${quoted(name)} is not allowed; docs/views.md lists those that are`)
  }
  // `position` has a syntax of its own.
  const printed = name === 'position' ? 'strpos' : name
  return (column) => `${printed}(${children.map((child) => child(column)).join(', ')})`
}

/** LIKE and its kin: patterns must be constants, and are turned into functions that take linear time. */
function printMatch(
  name: string,
  kind: Pattern,
  children: readonly unknown[],
  printAll: (children: unknown) => readonly Condition[],
): Condition {
  const [subject = fixed('NULL')] = printAll(children.slice(0, 1))
  const texts = children.slice(1).map((child) => {
    const text = textConstant(child)
    if (text === undefined) throw new ConditionError(`the pattern of ${quoted(name)} must be a text constant`)
    return text
  })
  const [pattern = '', escapeWith, ...more] = texts
  if (texts.length === 0 || more.length > 0 || (escapeWith !== undefined && !kind.takesEscape)) {
    throw new ConditionError(`${quoted(name)} takes a text and a pattern`)
  }
  if (escapeWith !== undefined && escapeWith.length > 1) throw new ConditionError('ESCAPE takes one character')
  if (kind.syntax !== 'like' && expandedSize(pattern) > definitionLimits.regexSizeMax) {
    throw new ConditionError(
      `the pattern of ${quoted(name)} is too large: with its repetitions written out it has more than ${definitionLimits.regexSizeMax} parts`,
    )
  }
  if (texts.some((text) => text.includes('\0'))) throw new ConditionError('a text must not contain NUL')
  return (column) => patternSql(kind, subject(column), pattern, escapeWith)
}
