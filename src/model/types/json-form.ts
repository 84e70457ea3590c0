/**
 * The JSON form of a value. It depends on the type of the column alone, never on the value, except that JSON has no NaN and no infinities:
 * these are text.
 */
import { type ColumnType, descriptorOf } from './column-type.ts'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** Converts a value from the form in which DuckDB's client returns it. */
export function jsonForm(value: Json, type: ColumnType): Json {
  if (value === null) return null
  if (Array.isArray(value)) return value.map((item: Json) => jsonForm(item, type))
  const { toJson } = descriptorOf(type.scalar)
  return toJson === undefined ? value : toJson(String(value))
}
