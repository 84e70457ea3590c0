import { type ColumnType, ColumnTypeError, descriptorOf, parseType, printType } from '#model/types/column-type.ts'
import { ConditionError, type Node, objectOf, quoted } from './condition.ts'

/** Returns the type of a cast in a condition; only types that a column may have. */
export function parseCastType(node: Node): ColumnType {
  const name = castTypeName(node)
  try {
    return parseType(name)
  } catch (error) {
    if (!(error instanceof ColumnTypeError)) throw error
    throw new ConditionError(`cannot cast to ${quoted(name)}: ${error.message}`)
  }
}

/**
 * SQL for a value as conditions see it, from SQL for a value of the type. A TIMESTAMPTZ is compared as the TIMESTAMP in UTC: DuckDB
 * would read a text beside it in the zone that the text of an earlier row names.
 */
export function asFiltered(sql: string, type: ColumnType): string {
  const { filteredAs } = descriptorOf(type.scalar)
  return filteredAs === undefined ? sql : `CAST(${sql} AS ${printType({ scalar: filteredAs, depth: type.depth })})`
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

/** The parentheses of a type that DuckDB's parser does not know. */
function modifiers(given: unknown): string {
  const values = Array.isArray(given) ? given.map((each) => String(objectOf(each)['value'])) : []
  return values.length === 0 ? '' : `(${values.join(',')})`
}
