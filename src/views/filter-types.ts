import { type ColumnType, ColumnTypeError, descriptorOf, parseType, printType } from '#model/types/column-type.ts'
import { ConditionError, type Node, objectOf, quoted } from './condition.ts'

/** Returns the type of a cast in a condition. Only types of columns are allowed. */
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
 * Converts SQL for a value of the type to SQL for its value in conditions. A TIMESTAMPTZ is compared as the TIMESTAMP in UTC. Otherwise
 * DuckDB would apply the zone in the text of an earlier row to a text that it is compared with.
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

/** Returns the parameters of a type that DuckDB's parser does not know. */
function modifiers(given: unknown): string {
  const values = Array.isArray(given) ? given.map((each) => String(objectOf(each)['value'])) : []
  return values.length === 0 ? '' : `(${values.join(',')})`
}
