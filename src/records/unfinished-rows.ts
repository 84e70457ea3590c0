/**
 * Rows that are accepted, and not yet in the files of a layout: which record each is from, and which is the first of its key.
 *
 * Owns: the columns for that behind those of the view, and SQL for the first rows. Does not own: what becomes of the others (lay-out.ts).
 */
import { quoteIdentifier } from '#duckdb/quote.ts'
import { must } from '#lib/assert.ts'
import type { CompiledView } from '#views/compiled-view.ts'

/** The columns that say which record a row is from, and which element of it. No column of a view can have such a name. */
export const recordIndex = quoteIdentifier('\u001frecord_index')
export const itemIndex = quoteIdentifier('\u001fitem_index')
/** Hidden columns of the key. */
export const keyColumn = (index: number): string => quoteIdentifier(`\u001fkey_${index}`)

/** All texts are SQL. */
export type KeyedRows = {
  readonly rows: string
  readonly record: string
  /** Undefined in a view that does not expand an array. */
  readonly item: string | undefined
  readonly keys: readonly { readonly value: string; readonly isText: boolean }[]
}

export function keyedRows(view: CompiledView, rows: string): KeyedRows {
  const item = view.expand === undefined ? undefined : itemIndex
  return { rows, record: recordIndex, item, keys: keysOf(view) }
}

/** Returns the columns of `dedupe_by`. `values` has SQL for the value of each column of the view; by default its name in unfinished rows. */
export function keysOf({ columns, layout }: CompiledView, values?: readonly string[]): KeyedRows['keys'] {
  return layout.dedupeBy.map((index) => {
    const { name, hidden, type } = must(columns[index], 'a column')
    const value = values?.[index] ?? (hidden ? keyColumn(index) : quoteIdentifier(name))
    return { value, isText: type.scalar === 'VARCHAR' }
  })
}

const keyBytesMax = 64

/** SQL that is true for the first row of each key, of the segment or of each record. A row with NULL in its key is like no other. */
export function isFirstSql({ rows, record, item, keys }: KeyedRows, within: 'segment' | 'record' = 'segment'): string {
  // A long text counts by its hash: the keys of a segment must fit into memory.
  const values = keys.map(({ value, isText }) =>
    isText ? `CASE WHEN strlen(${value}) > ${keyBytesMax} THEN 'h' || sha256(${value}) ELSE 't' || ${value} END` : value,
  )
  const row = item === undefined ? record : `{r: ${record}, i: ${item}}`
  const group = within === 'record' ? [record, ...values] : values
  const firsts = `SELECT min(${row}) FROM (${rows}) GROUP BY ${group.join(', ')}`
  return `(${row} IN (${firsts}) OR ${keys.map(({ value }) => `${value} IS NULL`).join(' OR ')})`
}
