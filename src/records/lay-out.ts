/**
 * Lays out the accepted rows of a view: duplicates are left out, and each partition has a file with its rows in order.
 *
 * Owns: which rows are duplicates within a segment, which partitions a segment has, and their files. Does not own: which columns decide that (views/layout.ts),
 * keys in the bucket, which keys earlier segments have.
 * Law: of the rows with one key, the first is in a file, and of the others each is counted. A row is in one file. A row without a place goes to the DLQ: in a folder of other values, nobody who looks for it would find it.
 */
import { rm } from 'node:fs/promises'
import type { Rows, Value } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { assert, must } from '#lib/assert.ts'
import { nullFolder } from '#model/artifact.ts'
import { objectKeyLimits } from '#model/limits.ts'
import { printType } from '#model/types/column-type.ts'
import type { ViewQuality } from '#model/view-quality.ts'
import type { CompiledColumn, CompiledView } from '#views/compiled-view.ts'
import { verdicts } from '#views/extraction.ts'
import type { RowFile } from './extracted-views.ts'
import { copyHashesSql, fileKeySql, type KeyFilter, readHashesSql, separateKeys } from './key-hashes.ts'
import { parquetRowsSql } from './parquet-writer.ts'
import { writePieces } from './piece-files.ts'
import { fallBackIfOutOfMemory } from './pieces.ts'

/** The columns of unfinished files that say which record a row is from, and which element of it. No column of a view can have such a name. */
const recordIndexColumn = '\u001frecord_index'
const itemIndexColumn = '\u001fitem_index'
/** Hidden columns of the key. */
const keyColumn = (index: number) => `\u001fkey_${index}`

export type LayOutOptions = {
  readonly view: CompiledView
  /** The accepted rows in the order of the records, with `placeColumns` behind the columns of the view. It is removed. */
  readonly path: string
  readonly rows: number
  /** Records of the segment. */
  readonly records: number
  readonly partitionsMax: number
  /** For a view with `dedupe_within`: leaves out rows whose keys earlier segments have. */
  readonly keys?: KeyFilter | undefined
  /** The table of refused rows. */
  readonly refused: string
  /** Measures the columns of a file that has all accepted rows. */
  readonly measure: (path: string, rows: number) => Promise<ViewQuality>
  readonly query: (sql: string) => Promise<Rows>
  readonly run: (sql: string) => Promise<void>
  /** Writes a Parquet file. Returns the number of its rows. */
  readonly copy: (select: string, path: string) => Promise<number>
  /** Writes the rows of Parquet files to one. */
  readonly merge: (files: readonly string[], path: string) => Promise<unknown>
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
    view.columns[index]?.hidden === true ? [`${values[index]} AS ${quoteIdentifier(keyColumn(index))}`] : [],
  )
  const ofItem = view.expand === undefined ? [] : [`item_index AS ${quoteIdentifier(itemIndexColumn)}`]
  return [`record_index AS ${quoteIdentifier(recordIndexColumn)}`, ...ofItem, ...keys]
}

/** Writes the files beside the path. */
export async function layOut(options: LayOutOptions): Promise<LaidOut> {
  const { view, path, measure } = options
  const { partitions, more } = await findPartitions(options)
  const unplaced = more === undefined ? 0 : await refuse(options, partitions, more)
  // A row that is refused hides no other one with its key.
  const placed = unplaced === 0 ? path : await leaveOutRefused(options)
  const firstOfSegment = view.layout.dedupeBy.length === 0 ? placed : await leaveOutDuplicates(options, placed)
  const first = options.keys === undefined ? firstOfSegment : await leaveOutKnown(options, firstOfSegment, options.keys)
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

/** Keeps only the first row of each key. A row with NULL in its key is like no other. */
async function leaveOutDuplicates({ view, path, copy }: LayOutOptions, placed: string): Promise<string> {
  const columns = view.layout.dedupeBy.map((index) => {
    const { name, hidden, type } = must(view.columns[index], 'a column')
    return { name: quoteIdentifier(hidden ? keyColumn(index) : name), isText: type.scalar === 'VARCHAR' }
  })
  // A long text counts by its hash: the keys of a segment must fit into memory.
  const keys = columns.map(({ name, isText }) =>
    isText ? `CASE WHEN strlen(${name}) > ${keyBytesMax} THEN 'h' || sha256(${name}) ELSE 't' || ${name} END` : name,
  )
  const row = view.expand === undefined ? recordIndex : `{r: ${recordIndex}, i: ${quoteIdentifier(itemIndexColumn)}}`
  const rows = parquetRowsSql([placed])
  const firsts = `SELECT min(${row}) FROM (${rows}) GROUP BY ${keys.join(', ')}`
  const isFirst = `${row} IN (${firsts}) OR ${columns.map(({ name }) => `${name} IS NULL`).join(' OR ')}`
  const first = `${path}.first`
  await copy(`SELECT * FROM (${rows}) WHERE ${isFirst}`, first)
  return first
}

const keyBytesMax = 64

/** Keeps only rows whose keys no earlier segment has, and those without a key. The file has no key twice. */
async function leaveOutKnown({ view, path, copy, run }: LayOutOptions, first: string, keys: KeyFilter): Promise<string> {
  const hash = fileKeySql(view)
  const rows = parquetRowsSql([first])
  const [hashes, known] = [`${path}.hashes`, `${path}.known`]
  await run(copyHashesSql(hash, rows, hashes))
  const counts = await separateKeys(hashes, keys, known)
  const fresh = `${path}.fresh`
  if (counts.known > 0)
    await copy(`SELECT * FROM (${rows}) WHERE ${hash} IS NULL OR ${hash} NOT IN (${readHashesSql(known)})`, fresh)
  for (const unfinished of [hashes, known]) await rm(unfinished)
  return counts.known > 0 ? fresh : first
}

/**
 * Writes the rows that meet the condition. If they do not fit into memory to be sorted, those of some records after the other are: the file is
 * ordered in parts then, as a merged one is.
 */
async function writeInOrder(
  { view, records, copy, merge }: LayOutOptions,
  from: string,
  condition: string,
  file: string,
): Promise<number> {
  const select = (more: string) =>
    `${selectSql(view)} FROM (${parquetRowsSql([from])}) WHERE ${condition}${more} ${orderSql(view)}`
  return fallBackIfOutOfMemory(
    () => copy(select(''), file),
    async () => {
      const written = await writePieces([{ from: 0, to: records }], file, {
        write: (piece, part) => copy(select(` AND ${recordIndex} >= ${piece.from} AND ${recordIndex} < ${piece.to}`), part),
        merge: (parts) => merge(parts, file),
      })
      return written.reduce((sum, rows) => sum + rows, 0)
    },
  )
}

const recordIndex = quoteIdentifier(recordIndexColumn)
const [fits, rowsColumn] = ['\u001ffits', '\u001frows'].map(quoteIdentifier) as [string, string]

/** `condition` is SQL that is true for its rows. */
type Partition = { readonly values: NonNullable<RowFile['partition']>; readonly condition: string }

/** Rows that are in none of the partitions: how many partitions the segment has. */
type More = { readonly partitions: number }

async function findPartitions({
  view,
  path,
  partitionsMax,
  query,
}: LayOutOptions): Promise<{ readonly partitions: readonly Partition[]; readonly more?: More }> {
  const columns = partitionColumns(view)
  if (columns.length === 0) return { partitions: [{ values: [], condition: 'true' }] }
  const names = columns.map(({ name }) => quoteIdentifier(name))
  // Values that fit into no folder may be long and many: they count as one partition, in which NULL stands for them.
  const inFolders = `SELECT ${columns.map(inFolder).join(', ')} FROM (${parquetRowsSql([path])})`
  const fitting = names.map((name) => `CASE WHEN ${fits} THEN ${name} END AS ${name}`)
  const texts = names.map((name) => `CAST(${name} AS VARCHAR)`)
  const { rows } = await query(`SELECT count(*) OVER (), ${fits}, ${texts.join(', ')} FROM (
      SELECT ${fits}, ${fitting.join(', ')}, count(*) AS ${rowsColumn} FROM (SELECT *, ${fitsSql(columns)} AS ${fits} FROM (${inFolders})) GROUP BY ALL)
    ORDER BY ${fits} DESC, ${rowsColumn} DESC, ${names.join(', ')} LIMIT ${partitionsMax}`)
  const all = Number(rows[0]?.[0] ?? 0)
  const kept = rows.filter(([, fits]) => fits === true)
  const partitions = kept.map(([, , ...values]) => partitionOf(columns, values))
  return { partitions, ...(all > kept.length && { more: { partitions: all } }) }
}

/** SQL for the value of a folder. Hive and Spark have no name for an empty text, and Spark refuses a table with one: it is NULL, as they write it. */
function inFolder({ name, type }: CompiledColumn): string {
  const column = quoteIdentifier(name)
  return type.scalar === 'VARCHAR' ? `nullif(${column}, '') AS ${column}` : column
}

/** SQL that is true if the folders of a partition fit into a key, and mean its values. */
function fitsSql(columns: readonly CompiledColumn[]): string {
  const texts = columns.map(({ name }) => `CAST(${quoteIdentifier(name)} AS VARCHAR)`)
  const ofNames = columns.reduce((bytes, { name }) => bytes + name.length + '/='.length, 0)
  const lengths = texts.map((text) => `coalesce(strlen(url_encode(${text})), ${nullFolder.length})`)
  const readable = texts.map((text) => `coalesce(${text} <> ${quoteLiteral(nullFolder)} AND strpos(${text}, chr(0)) = 0, true)`)
  // A directory store writes % as %25.
  const folders = texts.map(
    (text, at) =>
      `coalesce(strlen(replace(url_encode(${text}), '%', '%25')), 0) + ${(columns[at]?.name.length ?? 0) + 1} <= ${objectKeyLimits.fileNameBytesMax}`,
  )
  const fits = [`${[...lengths, ofNames].join(' + ')} <= ${objectKeyLimits.partitionBytesMax}`, ...folders, ...readable]
  return `(${fits.join(' AND ')})`
}

function partitionOf(columns: readonly CompiledColumn[], texts: readonly Value[]): Partition {
  const values = columns.map(({ name }, at) => ({ column: name, value: (texts[at] ?? null) as string | null }))
  const conditions = columns.map(({ name, type }, at) => {
    const value = values[at]?.value ?? null
    const column = quoteIdentifier(name)
    if (value !== null) return `${column} = CAST(${quoteLiteral(value)} AS ${printType(type)})`
    return type.scalar === 'VARCHAR' ? `coalesce(${column}, '') = ''` : `${column} IS NULL`
  })
  return { values, condition: conditions.join(' AND ') }
}

/** Adds the records of the other partitions to the refused rows. Returns their number. */
async function refuse(
  { view, path, partitionsMax, refused, query }: LayOutOptions,
  kept: readonly Partition[],
  more: More,
): Promise<number> {
  const columns = partitionColumns(view)
  const names = columns.map(({ name }) => quoteIdentifier(name))
  const isKept = kept.length === 0 ? 'false' : kept.map(({ condition }) => `(${condition})`).join(' OR ')
  const shown = `left(CAST(to_json([${names.map((name) => `CAST(${name} AS VARCHAR)`).join(', ')}]) AS VARCHAR), 200)`
  const ofColumns = columns.map(({ name }) => name).join(', ')
  const many = `concat('the segment has ${more.partitions} partitions of ${ofColumns}, and only the ${partitionsMax} with the most rows have files: ', ${shown}, ' is not one of them')`
  const long = `concat('the values ', ${shown}, ' of ${ofColumns} cannot name folders, which have at most ${objectKeyLimits.partitionBytesMax} bytes')`
  const reason = `CASE WHEN ${fitsSql(columns)} THEN ${many} ELSE ${long} END`
  const [first, group] = view.expand === undefined ? [reason, ''] : [`first(${reason})`, 'GROUP BY ALL']
  const { rows } = await query(`INSERT INTO ${refused} (record_index, verdict, failed)
    SELECT ${recordIndex}, ${verdicts.unplaced}, ${first} FROM (${parquetRowsSql([path])}) WHERE (${isKept}) IS NOT TRUE ${group}`)
  return Number(rows[0]?.[0])
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
  const ofItem = expand === undefined ? '' : `, ${quoteIdentifier(itemIndexColumn)}`
  return `ORDER BY ${names.join(', ')}, ${recordIndex}${ofItem}`
}

function partitionColumns({ columns, layout }: CompiledView): readonly CompiledColumn[] {
  return layout.partitionBy.map((index) => must(columns[index], 'a column'))
}
