/** Prints the constants of a condition from the values in the parser's tree. */
import { quoteLiteral } from '#duckdb/quote.ts'
import { ConditionError, type Node, objectOf } from './condition.ts'

/** Returns the text if the expression is a text constant. */
export function textConstant(node: unknown): string | undefined {
  const { class: kind, value } = objectOf(node)
  if (kind !== 'CONSTANT') return undefined
  const { is_null: isNull, value: text } = objectOf(value)
  return isNull === false && typeof text === 'string' ? text : undefined
}

/** Returns the number if the expression is an integer constant. */
export function integerConstant(node: unknown): bigint | undefined {
  const { class: kind, value } = objectOf(node)
  if (kind !== 'CONSTANT') return undefined
  const { type, value: number } = objectOf(value)
  return String(objectOf(type)['id']).endsWith('INTEGER') ? parseInteger(number) : undefined
}

export function printConstant(node: Node): string {
  const { id, type_info: details } = objectOf(node['type']) as { id?: unknown; type_info?: unknown }
  const value = node['value']
  if (node['is_null'] === true) return 'NULL'
  if (id === 'VARCHAR' && typeof value === 'string') {
    if (value.includes('\0')) throw new ConditionError('a text must not contain NUL')
    return quoteLiteral(value)
  }
  if (id === 'BOOLEAN') return value === true ? 'TRUE' : 'FALSE'
  if (id === 'DOUBLE' && typeof value === 'number' && Number.isFinite(value)) return `(${value.toExponential()})`
  // A large double without a fraction.
  if (id === 'DOUBLE' && typeof value === 'bigint') return `(${Number(value).toExponential()})`
  const integer = parseInteger(value)
  if (integer === undefined) throw new ConditionError('constants must be text, numbers, TRUE, FALSE or NULL')
  if (id === 'DECIMAL') return printDecimal(integer, Number(objectOf(details)['scale']))
  if (id === 'UHUGEINT') throw new ConditionError('a number is too large')
  // The smallest HUGEINT has no literal: it would be the negative of a number that is too large.
  if (id === 'HUGEINT') return `CAST('${integer}' AS HUGEINT)`
  return integer < 0n ? `(${integer})` : String(integer)
}

/** Numbers of more than 64 bits have two parts. */
function parseInteger(value: unknown): bigint | undefined {
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return BigInt(value as bigint | number)
  if (typeof value !== 'object' || value === null) return undefined
  const { upper, lower } = value as Node
  const [high, low] = [parseInteger(upper), parseInteger(lower)]
  return high === undefined || low === undefined ? undefined : (high << 64n) + low
}

function printDecimal(value: bigint, scale: number): string {
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0')
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
  return value < 0n ? `(-${text})` : text
}
