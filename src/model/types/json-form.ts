/**
 * The JSON form of a value. It depends on the type of the column alone, never on the value, except that JSON has no NaN and no infinities:
 * these are text.
 */
import type { Json } from '#lib/json.ts'
import { type ColumnType, descriptorOf } from './column-type.ts'

/** Converts a value from the form in which DuckDB's client returns it. */
export function jsonForm(value: Json, type: ColumnType): Json {
  if (value === null) return null
  if (Array.isArray(value)) return value.map((item: Json) => jsonForm(item, type))
  const { toJson } = descriptorOf(type.scalar)
  return toJson === undefined ? value : toJson(String(value))
}
