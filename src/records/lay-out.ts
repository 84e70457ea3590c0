/**
 * Lays out the accepted rows of a view: duplicates are left out, and each partition has a file with its rows in order.
 *
 * Owns: which rows are duplicates within a segment, and the files of its partitions. Does not own: which columns decide that (views/layout.ts),
 * which partitions a segment has (place-records.ts), keys in the bucket, which keys earlier segments have.
 * Law: of the rows with one key, the first is in a file, and of the others each is counted. A row is in one file. A row without a place goes to the DLQ: in a folder of other values, nobody who looks for it would find it.
 */
import { rm } from 'node:fs/promises'
import { quoteIdentifier } from '#duckdb/quote.ts'
import { assert, must } from '#lib/assert.ts'
import type { ViewQuality } from '#model/view-quality.ts'
import type { CompiledView } from '#views/compiled-view.ts'
import type { RowFile } from './extracted-views.ts'
import { copyHashesSql, fileKeySql, type KeyFilter, readHashesSql, separateKeys } from './key-hashes.ts'
import { parquetRowsSql } from './parquet-writer.ts'
import { copyFitting, type PlaceOptions, placeRecords } from './place-records.ts'
import { isFirstSql, itemIndex, keyColumn, keyedRows, recordIndex } from './unfinished-rows.ts'

export type LayOutOptions = PlaceOptions & {
  readonly rows: number
  readonly run: (sql: string) => Promise<void>
  /** For a view with `dedupe_within`: leaves out rows whose keys earlier segments have. */
  readonly keys?: KeyFilter | undefined
  /** Measures the columns of a file that has all accepted rows. */
  readonly measure: (path: string, rows: number) => Promise<ViewQuality>
}

export type LaidOut = {
  readonly files: readonly RowFile[]
  /** Measured on the rows that the files have. */
  readonly quality: ViewQuality
  /** Rows that the files have. */
  readonly rows: number
  /** Records that were added to the refused ones, with all of their rows. */
  readonly unplaced: number
  /** Rows that are in no file because others before them have their key, and the records that have no other rows. */
  readonly duplicates: number
  readonly repeated: number
}

export function isLaidOut({ layout }: CompiledView): boolean {
  return layout.dedupeBy.length > 0 || layout.partitionBy.length > 0 || layout.sortBy.length > 0
}

/** SQL for the columns behind those of the view. `values` has the names of the values. */
export function placeColumns(view: CompiledView, values: readonly string[]): readonly string[] {
  if (!isLaidOut(view)) return []
  const keys = view.layout.dedupeBy.flatMap((index) =>
    view.columns[index]?.hidden === true ? [`${values[index]} AS ${keyColumn(index)}`] : [],
  )
  const ofItem = view.expand === undefined ? [] : [`item_index AS ${itemIndex}`]
  return [`record_index AS ${recordIndex}`, ...ofItem, ...keys]
}

/** Writes the files beside the path. */
export async function layOut(options: LayOutOptions): Promise<LaidOut> {
  const { view, path, measure, keys } = options
  const { partitions, unplaced } = await placeRecords({
    ...options,
    newRows: keys && (() => leaveOutWritten(options, keys)),
  })
  // A row that is refused hides no other one with its key.
  const placed = unplaced === 0 ? path : await leaveOutRefused(options)
  const firstOfSegment = view.layout.dedupeBy.length === 0 ? placed : await leaveOutDuplicates(options, placed)
  const first = keys === undefined ? firstOfSegment : await leaveOutKnown(options, firstOfSegment, keys, `${path}.fresh`)
  const rows = await countRows(options, first, 'count(*)')
  const duplicates = (placed === path ? options.rows : await countRows(options, placed, 'count(*)')) - rows
  const repeated = duplicates === 0 ? 0 : (await countRecords(options, placed)) - (await countRecords(options, first))
  const quality = await measure(first, rows)
  const files: RowFile[] = []
  for (const [index, { values, condition }] of partitions.entries()) {
    const file = `${path}.${index}.parquet`
    const written = await writeInOrder(options, first, condition, file)
    if (written > 0) files.push({ path: file, rows: written, ...(values.length > 0 && { partition: values }) })
  }
  const inFiles = files.reduce((sum, file) => sum + file.rows, 0)
  assert(inFiles === rows, `the files have ${inFiles} of ${rows} rows`)
  for (const unfinished of new Set([path, placed, firstOfSegment, first])) await rm(unfinished)
  return { files, quality, rows, unplaced, duplicates, repeated }
}

async function countRows({ query }: LayOutOptions, file: string, count: string): Promise<number> {
  const { rows } = await query(`SELECT ${count} FROM (${parquetRowsSql([file])})`)
  return Number(rows[0]?.[0])
}

function countRecords(options: LayOutOptions, file: string): Promise<number> {
  return countRows(options, file, `count(DISTINCT ${recordIndex})`)
}

async function leaveOutRefused({ path, refused, copy }: LayOutOptions): Promise<string> {
  const placed = `${path}.placed`
  await copy(
    `SELECT * FROM (${parquetRowsSql([path])}) WHERE ${recordIndex} NOT IN (SELECT record_index FROM ${refused})`,
    placed,
  )
  return placed
}

/** Keeps only the first row of each key. */
async function leaveOutDuplicates({ view, path, copy }: LayOutOptions, placed: string): Promise<string> {
  const rows = parquetRowsSql([placed])
  const first = `${path}.first`
  await copy(`SELECT * FROM (${rows}) WHERE ${isFirstSql(keyedRows(view, rows))}`, first)
  return first
}

/** Leaves out all rows with keys of earlier segments. They need no place, and the keys of the others are not written yet. */
async function leaveOutWritten(options: LayOutOptions, { find }: KeyFilter): Promise<string> {
  const keys = `${options.path}.new-keys`
  const rows = await leaveOutKnown(options, options.path, { find, path: keys }, `${options.path}.new`)
  await rm(keys)
  return rows
}

/** Writes the rows whose keys no earlier segment has, and those without a key. Returns the file, which is the one before if there are no others. */
async function leaveOutKnown({ view, copy, run }: LayOutOptions, from: string, keys: KeyFilter, to: string): Promise<string> {
  const hash = fileKeySql(view)
  const rows = parquetRowsSql([from])
  const [hashes, known] = [`${to}.hashes`, `${to}.known`]
  await run(copyHashesSql(hash, rows, hashes))
  const counts = await separateKeys(hashes, keys, known)
  if (counts.known > 0)
    await copy(`SELECT * FROM (${rows}) WHERE ${hash} IS NULL OR ${hash} NOT IN (${readHashesSql(known)})`, to)
  for (const unfinished of [hashes, known]) await rm(unfinished)
  return counts.known > 0 ? to : from
}

/** Writes the rows that meet the condition. If they do not fit into memory to be sorted, the file is ordered in parts, as a merged one is. */
function writeInOrder(options: LayOutOptions, from: string, condition: string, file: string): Promise<number> {
  const { view } = options
  const select = (more: string) =>
    `${selectSql(view)} FROM (${parquetRowsSql([from])}) WHERE ${condition}${more} ${orderSql(view)}`
  return copyFitting(options, select, file)
}

/** The columns that stay in the files. */
function selectSql({ columns, layout }: CompiledView): string {
  const kept = columns.flatMap(({ name, hidden }, index) =>
    hidden || layout.partitionBy.includes(index) ? [] : [quoteIdentifier(name)],
  )
  return `SELECT ${kept.join(', ')}`
}

function orderSql({ columns, layout, expand }: CompiledView): string {
  if (layout.sortBy.length === 0) return ''
  const names = layout.sortBy.map((index) => `${quoteIdentifier(must(columns[index], 'a column').name)} NULLS FIRST`)
  const ofItem = expand === undefined ? '' : `, ${itemIndex}`
  return `ORDER BY ${names.join(', ')}, ${recordIndex}${ofItem}`
}
