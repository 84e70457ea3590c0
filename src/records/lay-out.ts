/**
 * Lays out the accepted rows of a view: duplicates are left out, and each partition has a file with its rows in order.
 *
 * Owns: which rows are duplicates, which partitions a segment has, and their files. Does not own: which columns decide that (views/layout.ts),
 * keys in the bucket.
 * Law: of the rows with one key, the first is in a file, and of the others each is counted. A row is in one file. A row without a place goes to the DLQ: in a folder of other values, nobody who looks for it would find it.
 */
import { rename, rm } from 'node:fs/promises'
import type { Rows, Value } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { must } from '#lib/assert.ts'
import { nullFolder } from '#model/artifact.ts'
import { objectKeyLimits } from '#model/limits.ts'
import { printType } from '#model/types/column-type.ts'
import type { ViewQuality } from '#model/view-quality.ts'
import type { CompiledColumn, CompiledView } from '#views/compiled-view.ts'
import { verdicts } from '#views/extraction.ts'
import type { RowFile } from './extracted-views.ts'
import { parquetRowsSql } from './parquet-writer.ts'

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
  readonly partitionsMax: number
  /** The table of refused rows. */
  readonly refused: string
  /** Measures the columns of a file that has all accepted rows. */
  readonly measure: (path: string, rows: number) => Promise<ViewQuality>
  readonly query: (sql: string) => Promise<Rows>
  /** Writes a Parquet file. Returns the number of its rows. */
  readonly copy: (select: string, path: string) => Promise<number>
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
  const { view, path, measure, copy } = options
  const { duplicates, repeated } = view.layout.dedupeBy.length === 0 ? noDuplicates : await leaveOutDuplicates(options)
  let rows = options.rows - duplicates
  const { partitions, more } = await findPartitions(options)
  const unplaced = more === undefined ? 0 : await refuse(options, partitions, more)
  const whole = unplaced === 0 ? path : `${path}.kept`
  if (unplaced > 0) {
    const isKept = `${recordIndex} NOT IN (SELECT record_index FROM ${options.refused})`
    rows = await copy(`SELECT * FROM (${parquetRowsSql([path])}) WHERE ${isKept}`, whole)
    await rm(path)
  }
  const quality = await measure(whole, rows)
  const files: RowFile[] = []
  for (const [index, { values, condition }] of partitions.entries()) {
    const file = `${path}.${index}.parquet`
    const written = await copy(`${selectSql(view)} FROM (${parquetRowsSql([whole])}) WHERE ${condition} ${orderSql(view)}`, file)
    if (written > 0) files.push({ path: file, rows: written, ...(values.length > 0 && { partition: values }) })
  }
  await rm(whole)
  return { files, quality, rows, unplaced, duplicates, repeated }
}

const noDuplicates = { duplicates: 0, repeated: 0 }

/** Leaves only the first row of each key in the file. A row with NULL in its key is like no other. */
async function leaveOutDuplicates({
  view,
  path,
  rows,
  query,
  copy,
}: LayOutOptions): Promise<Pick<LaidOut, 'duplicates' | 'repeated'>> {
  const keys = view.layout.dedupeBy.map((index) => {
    const { name, hidden } = must(view.columns[index], 'a column')
    return quoteIdentifier(hidden ? keyColumn(index) : name)
  })
  const numbered = `read_parquet(${quoteLiteral(path)}, hive_partitioning = false, file_row_number = true)`
  const firsts = `SELECT min(file_row_number) FROM ${numbered} GROUP BY ${keys.join(', ')}`
  const isFirst = `(file_row_number IN (${firsts}) OR ${keys.map((key) => `${key} IS NULL`).join(' OR ')})`
  const first = `${path}.first`
  const left = await copy(`SELECT * EXCLUDE (file_row_number) FROM ${numbered} WHERE ${isFirst}`, first)
  const records = async (file: string) => {
    const { rows: counted } = await query(`SELECT count(DISTINCT ${recordIndex}) FROM (${parquetRowsSql([file])})`)
    return Number(counted[0]?.[0])
  }
  const duplicates = rows - left
  const repeated = duplicates === 0 ? 0 : (await records(path)) - (await records(first))
  await rename(first, path)
  return { duplicates, repeated }
}

const recordIndex = quoteIdentifier(recordIndexColumn)

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
  const { rows } =
    await query(`SELECT count(*) OVER (), ${fitsSql(columns)}, ${names.map((name) => `CAST(${name} AS VARCHAR)`).join(', ')}
    FROM (SELECT ${columns.map(inFolder).join(', ')}, count(*) AS rows FROM (${parquetRowsSql([path])}) GROUP BY ALL)
    ORDER BY 2 DESC, rows DESC, ${names.join(', ')} LIMIT ${partitionsMax}`)
  const all = Number(rows[0]?.[0] ?? 0)
  const fitting = rows.filter(([, fits]) => fits === true)
  const partitions = fitting.map(([, , ...values]) => partitionOf(columns, values))
  return { partitions, ...(all > fitting.length && { more: { partitions: all } }) }
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
  return `(${[...lengths, ofNames].join(' + ')} <= ${objectKeyLimits.partitionBytesMax} AND ${readable.join(' AND ')})`
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
  const { rows } = await query(`INSERT INTO ${refused} (record_index, verdict, failed)
    SELECT ${recordIndex}, ${verdicts.unplaced}, first(CASE WHEN ${fitsSql(columns)} THEN ${many} ELSE ${long} END)
    FROM (${parquetRowsSql([path])}) WHERE (${isKept}) IS NOT TRUE GROUP BY ALL`)
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
