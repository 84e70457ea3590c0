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
 * SQL that replaces values and lists beyond the range of the type by NULL, and values that not every reader understands by others.
 * `value` is repeated in it.
 */
export function portable(value: string, { scalar, depth }: ColumnType): string {
  const { range, portable: toPortable } = descriptorOf(scalar)
  if (toPortable !== undefined) return depth === 0 ? toPortable(value) : eachItem(value, depth, toPortable)
  if (range === undefined) return value
  if (depth === 0) return `CASE WHEN ${value} BETWEEN ${range.join(' AND ')} THEN ${value} END`
  const items = 'flatten('.repeat(depth - 1) + value + ')'.repeat(depth - 1)
  return `CASE WHEN list_min(${items}) < ${range[0]} OR list_max(${items}) > ${range[1]} THEN NULL ELSE ${value} END`
}

/** SQL for the value of a list type, from SQL of type `from`; NULL if any element is not a value: TRY turns the failure into NULL. Pass the result through `portable`. */
export function castList(source: string, from: 'JSON' | 'JSON[]' | 'VARCHAR[]', type: ColumnType): string {
  const { readsJson, inDuckDbSyntax } = descriptorOf(type.scalar)
  if (readsJson === true) return `TRY(${castTo(source, from, [printType(type)])})`
  const lists = '[]'.repeat(type.depth)
  const texts = castTo(source, from, [...(from === 'VARCHAR[]' && type.depth > 1 ? ['JSON[]'] : []), `VARCHAR${lists}`])
  const list = castTexts(texts, type)
  return inDuckDbSyntax === undefined
    ? list
    : `coalesce(${list}, ${castTexts(eachItem(texts, type.depth, inDuckDbSyntax), type)})`
}

/** SQL for the value of a list type, from SQL for a list of texts. */
function castTexts(texts: string, type: ColumnType): string {
  const { listVia, listGuard } = descriptorOf(type.scalar)
  const lists = '[]'.repeat(type.depth)
  const via = listVia === undefined ? [] : [`${listVia}${lists}`]
  const list = castTo(texts, `VARCHAR${lists}`, [...via, printType(type), printType(storedType(type))])
  return listGuard === undefined ? `TRY(${list})` : `TRY(CASE WHEN ${listGuard(`CAST(${texts} AS VARCHAR)`)} THEN ${list} END)`
}

/** SQL that casts from one type to the next. */
function castTo(source: string, from: string, types: readonly string[]): string {
  const changes = types.filter((to, index) => to !== (types[index - 1] ?? from))
  return changes.reduce((sql, to) => `CAST(${sql} AS ${to})`, source)
}

/** SQL that replaces the items of a list, or those of lists in it. */
function eachItem(list: string, depth: number, replaced: (item: string) => string): string {
  const item = `item_${depth}`
  return `list_transform(${list}, lambda ${item}: ${depth > 1 ? eachItem(item, depth - 1, replaced) : replaced(item)})`
}

/** Whether every text is a value, so that the cast cannot fail. */
export function acceptsAnyText({ scalar, depth }: ColumnType): boolean {
  return depth === 0 && descriptorOf(scalar).acceptsAnyText === true
}
