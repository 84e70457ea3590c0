/**
 * The folders of a view with `partition_by`: which values can name them, and why others cannot.
 *
 * Owns: SQL for that, and the partition that values stand for. Does not own: which partitions of a segment have files (place-records.ts), keys in the
 * bucket (model/artifact.ts).
 */
import type { Value } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { must } from '#lib/assert.ts'
import { nullFolder } from '#model/artifact.ts'
import { objectKeyLimits } from '#model/limits.ts'
import { type ColumnType, printType } from '#model/types/column-type.ts'
import type { CompiledView } from '#views/compiled-view.ts'
import type { RowFile } from './extracted-views.ts'

/** `value` is SQL for the value of its folder. */
export type FolderColumn = { readonly name: string; readonly type: ColumnType; readonly value: string }

/** `condition` is SQL that is true for its rows. */
export type Partition = { readonly values: NonNullable<RowFile['partition']>; readonly condition: string }

/** Returns the columns of `partition_by`. `values` has SQL for the value of each column of the view; by default its name. */
export function folderColumns({ columns, layout }: CompiledView, values?: readonly string[]): readonly FolderColumn[] {
  return layout.partitionBy.map((index) => {
    const { name, type } = must(columns[index], 'a column')
    const value = values?.[index] ?? quoteIdentifier(name)
    // Hive and Spark have no name for an empty text, and Spark refuses a table with one: it is NULL, as they write it.
    return { name, type, value: type.scalar === 'VARCHAR' ? `nullif(${value}, '')` : value }
  })
}

/** SQL for the reason why the values of a row cannot name folders; NULL if they can. */
export function misfitSql(columns: readonly FolderColumn[]): string {
  const texts = columns.map(textSql)
  const ofNames = columns.reduce((bytes, { name }) => bytes + name.length + '/='.length, 0)
  const lengths = texts.map((text) => `coalesce(strlen(url_encode(${text})), ${nullFolder.length})`)
  const isTooLong = `${[...lengths, ofNames].join(' + ')} > ${objectKeyLimits.partitionBytesMax}`
  // A directory store writes % as %25.
  const areTooLong = texts.map(
    (text, at) =>
      `coalesce(strlen(replace(url_encode(${text}), '%', '%25')), 0) + ${(columns[at]?.name.length ?? 0) + 1} > ${objectKeyLimits.fileNameBytesMax}`,
  )
  const some = (conditionOf: (text: string) => string) =>
    texts.map((text) => `coalesce(${conditionOf(text)}, false)`).join(' OR ')
  const reasons = [
    [some((text) => `strpos(${text}, chr(0)) > 0`), ': names cannot have the character U+0000'],
    [some((text) => `${text} = ${quoteLiteral(nullFolder)}`), `: ${nullFolder} stands for NULL`],
    [isTooLong, `, which have at most ${objectKeyLimits.partitionBytesMax} bytes`],
    [areTooLong.join(' OR '), `: one has more than ${objectKeyLimits.fileNameBytesMax} bytes where % is written as %25`],
  ]
  const values = `'the values ', ${shownSql(columns)}, ${quoteLiteral(` of ${namesOf(columns)} cannot name folders`)}`
  return `CASE ${reasons.map(([condition, reason = '']) => `WHEN ${condition} THEN concat(${values}, ${quoteLiteral(reason)})`).join(' ')} END`
}

/** SQL for the values in a message. */
export function shownSql(columns: readonly FolderColumn[]): string {
  return `left(${valuesSql(columns)}, 200)`
}

/** SQL for a text that no other values have. */
export function partitionHashSql(columns: readonly FolderColumn[]): string {
  return `left(sha256(${valuesSql(columns)}), 32)`
}

export function textSql({ value }: FolderColumn): string {
  return `CAST(${value} AS VARCHAR)`
}

export function namesOf(columns: readonly FolderColumn[]): string {
  return columns.map(({ name }) => name).join(', ')
}

export function partitionOf(columns: readonly FolderColumn[], texts: readonly Value[]): Partition {
  const values = columns.map(({ name }, at) => ({ column: name, value: (texts[at] ?? null) as string | null }))
  const conditions = columns.map(({ name, value, type }, at) => {
    const text = values[at]?.value ?? null
    return text === null ? `${value} IS NULL` : `${quoteIdentifier(name)} = CAST(${quoteLiteral(text)} AS ${printType(type)})`
  })
  return { values, condition: conditions.join(' AND ') }
}

function valuesSql(columns: readonly FolderColumn[]): string {
  return `CAST(to_json([${columns.map(textSql).join(', ')}]) AS VARCHAR)`
}
