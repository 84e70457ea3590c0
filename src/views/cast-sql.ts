/**
 * SQL that converts text and JSON of a record to values of a type.
 *
 * Law: text that is not a value of the type becomes NULL. A cast never fails a statement.
 */
import { type ColumnType, descriptorOf, printType, storedType } from '#model/types/column-type.ts'

/** SQL for the value of a scalar type, from SQL for its text; NULL if the text is not a value. Pass the result through `portable`. */
export function castText(text: string, type: ColumnType): string {
  const printed = printType(type)
  const value = descriptorOf(type.scalar).fromText?.(text) ?? `TRY_CAST(${text} AS ${printed})`
  const stored = printType(storedType(type))
  return stored === printed ? value : `TRY_CAST(${value} AS ${stored})`
}

/**
 * SQL that replaces scalars that Parquet cannot store (24:00), and values and lists beyond the range of the type, by NULL.
 * `value` is repeated in it.
 */
export function portable(value: string, { scalar, depth }: ColumnType): string {
  const { portable: toPortable, range } = descriptorOf(scalar)
  if (depth === 0 && range !== undefined) return `CASE WHEN ${value} BETWEEN ${range.join(' AND ')} THEN ${value} END`
  if (depth === 0) return toPortable?.(value) ?? value
  if (range === undefined) return value
  const items = 'flatten('.repeat(depth - 1) + value + ')'.repeat(depth - 1)
  return `CASE WHEN list_min(${items}) < ${range[0]} OR list_max(${items}) > ${range[1]} THEN NULL ELSE ${value} END`
}

/** SQL for the value of a list type, from SQL of type `from`; NULL if any element is not a value: TRY turns the failure into NULL. Pass the result through `portable`. */
export function castList(source: string, from: 'JSON' | 'JSON[]' | 'VARCHAR[]', type: ColumnType): string {
  const { readsJson, listVia, listGuard } = descriptorOf(type.scalar)
  const lists = '[]'.repeat(type.depth)
  let [sql, sqlType]: [string, string] = [source, from]
  const cast = (to: string): void => {
    if (to !== sqlType) [sql, sqlType] = [`CAST(${sql} AS ${to})`, to]
  }
  if (readsJson !== true) {
    if (from === 'VARCHAR[]' && type.depth > 1) cast('JSON[]')
    cast(`VARCHAR${lists}`)
  }
  const texts = `CAST(${sql} AS VARCHAR)`
  if (listVia !== undefined) cast(`${listVia}${lists}`)
  cast(printType(type))
  cast(printType(storedType(type)))
  return listGuard === undefined ? `TRY(${sql})` : `TRY(CASE WHEN ${listGuard(texts)} THEN ${sql} END)`
}

/** Whether every text is a value, so that the cast cannot fail. */
export function acceptsAnyText({ scalar, depth }: ColumnType): boolean {
  return depth === 0 && descriptorOf(scalar).acceptsAnyText === true
}
