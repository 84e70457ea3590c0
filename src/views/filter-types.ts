/** The types of the parts of a condition. */
import { type ColumnType, ColumnTypeError, descriptorOf, parseType } from '#model/types/column-type.ts'
import { ConditionError, type Node, objectOf, type PartType, quoted } from './condition.ts'

export const textType: ColumnType = { scalar: 'VARCHAR', depth: 0 }
export const booleanType: ColumnType = { scalar: 'BOOLEAN', depth: 0 }
export const doubleType: ColumnType = { scalar: 'DOUBLE', depth: 0 }
export const instantType: ColumnType = { scalar: 'TIMESTAMP', depth: 0 }

export const intervalNotAllowed = 'an interval is not allowed: add seconds, as in epoch_s(epoch(sent_at) + 86400) for a day'

/** Returns the type of a cast in a condition. Only types of columns are allowed. */
export function parseCastType(node: Node): ColumnType {
  const name = castTypeName(node)
  if (name === 'INTERVAL') throw new ConditionError(intervalNotAllowed)
  try {
    return parseType(name)
  } catch (error) {
    if (!(error instanceof ColumnTypeError)) throw error
    throw new ConditionError(`cannot cast to ${quoted(name)}: ${error.message}`)
  }
}

/**
 * Returns the type that values have in a condition. A TIMESTAMPTZ is the TIMESTAMP in UTC. Otherwise DuckDB would apply the zone in the
 * text of an earlier row to a text that it is compared with.
 */
export function filteredType(type: ColumnType): ColumnType {
  const { filteredAs } = descriptorOf(type.scalar)
  return filteredAs === undefined ? type : { scalar: filteredAs, depth: type.depth }
}

export function isScalar(type: PartType, ...scalars: readonly ColumnType['scalar'][]): boolean {
  return typeof type === 'object' && type.depth === 0 && scalars.includes(type.scalar)
}

export function isNumber(type: PartType): boolean {
  return type === 'number' || (typeof type === 'object' && type.depth === 0 && descriptorOf(type.scalar).isNumber === true)
}

export function isList(type: PartType): type is ColumnType {
  return typeof type === 'object' && type.depth > 0
}

/** Returns the word for a value of the type. */
export function kindOf(type: PartType): string {
  if (type === 'unknown') return 'an interval'
  if (type === 'number' || isNumber(type)) return 'a number'
  if (type.depth > 0) return 'a list'
  if (type.scalar === 'JSON') return 'JSON'
  return type.scalar === 'VARCHAR' ? 'text' : `a ${type.scalar}`
}

/** Returns the type of a list of such values. Lists of numbers have the type of the widest ones. */
export function listType(element: PartType): PartType {
  if (element === 'unknown') return element
  const { depth, ...scalar } = element === 'number' ? doubleType : element
  return { ...scalar, depth: depth + 1 }
}

export function elementOf(list: ColumnType): ColumnType {
  return { ...list, depth: list.depth - 1 }
}

/** Whether DuckDB reads some text as another value than a column of this type does: it drops offsets, for example. */
export function readsTextOtherwise({ scalar }: ColumnType): boolean {
  const { acceptsAnyText, fromText, range } = descriptorOf(scalar)
  return acceptsAnyText !== true && (fromText ?? range) !== undefined
}

/** Returns the type of a sum, a difference and so on. The difference of two timestamps is an interval, which has no type here. */
export function arithmeticType(parts: readonly { readonly type: PartType }[]): PartType {
  const has = (scalar: ColumnType['scalar']): number => parts.filter(({ type }) => isScalar(type, scalar)).length
  const hasUnknown = parts.some(({ type }) => type === 'unknown')
  if (has('TIMESTAMP') > 0) return has('TIMESTAMP') > 1 || has('DATE') > 0 ? 'unknown' : instantType
  if (has('DATE') > 0)
    return has('DATE') > 1 ? 'number' : hasUnknown || has('TIME') > 0 ? instantType : { scalar: 'DATE', depth: 0 }
  if (has('TIME') > 0) return has('TIME') > 1 ? 'unknown' : { scalar: 'TIME', depth: 0 }
  return hasUnknown ? 'unknown' : 'number'
}

function castTypeName(node: Node): string {
  const details = objectOf(node['type_info'] ?? {})
  switch (node['id']) {
    case 'LIST':
      return `${castTypeName(objectOf(details['child_type']))}[]`
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

/** Returns the parameters of a type that DuckDB's parser does not know. */
function modifiers(given: unknown): string {
  const values = Array.isArray(given) ? given.map((each) => String(objectOf(each)['value'])) : []
  return values.length === 0 ? '' : `(${values.join(',')})`
}
