/**
 * Gives the records of a segment their places: the partitions that have files, and the records that are refused because they need others.
 *
 * Owns: which partitions a segment has. Does not own: which values can name folders (partition-folders.ts), the files (lay-out.ts).
 * Law: a record is placed as a whole or refused. It needs a place for each row, except for rows with the key of one before them in the same record:
 * they are duplicates whatever becomes of the record. The same goes for rows whose keys earlier segments have. Only records that can be placed count
 * when partitions are chosen.
 */
import { rm } from 'node:fs/promises'
import type { Rows } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import type { CompiledView } from '#views/compiled-view.ts'
import { verdicts } from '#views/extraction.ts'
import { choosePartitions } from './choose-partitions.ts'
import { parquetRowsSql } from './parquet-writer.ts'
import {
  folderColumns,
  misfitSql,
  namesOf,
  type Partition,
  partitionHashSql,
  partitionOf,
  shownSql,
  textSql,
} from './partition-folders.ts'
import { writePieces } from './piece-files.ts'
import { cutToFit, fallBackIfOutOfMemory } from './pieces.ts'
import { isFirstSql, itemIndex, keyedRows, recordIndex } from './unfinished-rows.ts'

export type PlaceOptions = {
  readonly view: CompiledView
  /** The accepted rows in the order of the records, with `placeColumns` behind the columns of the view. It is removed. */
  readonly path: string
  /** Records of the segment. */
  readonly records: number
  readonly partitionsMax: number
  /** The table of refused rows. */
  readonly refused: string
  readonly query: (sql: string) => Promise<Rows>
  /** Writes a Parquet file. Returns the number of its rows. */
  readonly copy: (select: string, path: string) => Promise<number>
  /** Writes the rows of Parquet files to one. */
  readonly merge: (files: readonly string[], path: string) => Promise<unknown>
  /** Returns a file of the rows that no earlier segment has, which may be `path`. Called only if there are too many partitions. */
  readonly newRows?: (() => Promise<string>) | undefined
}

/** `unplaced` is the number of records that were added to the refused ones. */
export type Placed = { readonly partitions: readonly Partition[]; readonly unplaced: number }

export async function placeRecords(options: PlaceOptions): Promise<Placed> {
  const { view } = options
  if (view.layout.partitionBy.length === 0) return { partitions: [{ values: [], condition: 'true' }], unplaced: 0 }
  const { largest, all } = await findLargest(options)
  if (all === largest.length) return { partitions: largest, unplaced: 0 }
  if (options.newRows !== undefined) {
    const path = await options.newRows()
    const placed = await placeRecords({ ...options, path, newRows: undefined })
    if (path !== options.path) await rm(path)
    return placed
  }
  if (view.expand === undefined) return { partitions: largest, unplaced: await refuseOthers(options, largest, all) }
  return placeExpanded(options, all)
}

/** Writes the selected rows. `select` gets a condition to add. If the rows do not fit into memory, those of some records after the other are written. */
export function copyFitting(
  { records, copy, merge }: PlaceOptions,
  select: (more: string) => string,
  file: string,
): Promise<number> {
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

const [fits, rowsColumn] = ['"\u001ffits"', '"\u001frows"']

/** Finds the partitions with the most rows, and the number of all. Values that cannot name folders are one more. */
async function findLargest({ view, path, partitionsMax, query }: PlaceOptions) {
  const columns = folderColumns(view)
  // Values that fit into no folder may be long and many: they count as one partition, in which NULL stands for them.
  const values = columns.map(({ value }, at) => `CASE WHEN ${fits} THEN ${value} END AS "\u001fvalue_${at}"`)
  const names = columns.map((_, at) => `"\u001fvalue_${at}"`)
  const texts = names.map((name) => `CAST(${name} AS VARCHAR)`)
  const { rows } = await query(`SELECT count(*) OVER (), ${fits}, ${texts.join(', ')} FROM (
      SELECT ${fits}, ${values.join(', ')}, count(*) AS ${rowsColumn}
      FROM (SELECT *, (${misfitSql(columns)}) IS NULL AS ${fits} FROM (${parquetRowsSql([path])})) GROUP BY ALL)
    ORDER BY ${fits} DESC, ${rowsColumn} DESC, ${names.join(', ')} LIMIT ${partitionsMax}`)
  const largest = rows.filter(([, fits]) => fits === true).map(([, , ...texts]) => partitionOf(columns, texts))
  return { largest, all: Number(rows[0]?.[0] ?? 0) }
}

/** Refuses records, which have one row each, of other partitions. Returns their number. */
async function refuseOthers(options: PlaceOptions, kept: readonly Partition[], all: number): Promise<number> {
  const { view, path, partitionsMax } = options
  const columns = folderColumns(view)
  const isKept = kept.length === 0 ? 'false' : kept.map(({ condition }) => `(${condition})`).join(' OR ')
  const start = `the segment has ${all} partitions of ${namesOf(columns)}, and only the ${partitionsMax} with the most rows have files: `
  const reason = `coalesce(${misfitSql(columns)}, concat(${quoteLiteral(start)}, ${shownSql(columns)}, ' is not one of them'))`
  return insertRefused(
    options,
    (more) =>
      `SELECT ${recordIndex}, ${verdicts.unplaced}, ${reason} FROM (${parquetRowsSql([path])}) WHERE (${isKept}) IS NOT TRUE${more}`,
  )
}

/** Places records with several rows: those that need the same partitions are one candidate. */
async function placeExpanded(options: PlaceOptions, all: number): Promise<Placed> {
  const { path } = options
  const [places, needs] = [`${path}.places`, `${path}.needs`]
  await writePlaces(options, places)
  await writeNeeds(options, places, needs)
  const kept = await chooseKept(options, needs)
  const partitions = await findKept(options, kept)
  const unplaced = await refuseUnplaced(options, { places, kept, all })
  for (const unfinished of [places, needs]) await rm(unfinished)
  return { partitions, unplaced }
}

/** Writes the partition of each row that needs a place. */
async function writePlaces(options: PlaceOptions, places: string): Promise<void> {
  const { view, path } = options
  const columns = folderColumns(view)
  const place = [
    ...[`${recordIndex} AS ${recordIndex}`, `${itemIndex} AS item`, `${partitionHashSql(columns)} AS partition`],
    ...[`${misfitSql(columns)} AS misfit`, `${shownSql(columns)} AS shown`],
  ]
  const select = (more: string) => {
    const rows = `SELECT * FROM (${parquetRowsSql([path])}) WHERE true${more}`
    const isNeeded = view.layout.dedupeBy.length === 0 ? 'true' : isFirstSql(keyedRows(view, rows), 'record')
    return `SELECT ${place.join(', ')} FROM (${rows}) WHERE ${isNeeded}`
  }
  await copyFitting(options, select, places)
}

/** Writes the partitions that each record needs. Names of more than can have files are left out. */
async function writeNeeds(options: PlaceOptions, places: string, needs: string): Promise<void> {
  const { partitionsMax } = options
  const names = `CASE WHEN can_fit AND len(names) <= ${partitionsMax} THEN array_to_string(list_sort(names), ',') END`
  // A short key saves memory. If two sets had the same, only their candidate would have too many records.
  const select = (more: string) => `SELECT *, md5_number_lower(partitions) AS set_key
    FROM (SELECT ${recordIndex}, can_fit, len(names) AS needed, ${names} AS partitions
      FROM (SELECT ${recordIndex}, bool_and(misfit IS NULL) AS can_fit, list(DISTINCT partition) AS names
        FROM (${parquetRowsSql([places])}) WHERE true${more} GROUP BY ${recordIndex}))`
  await copyFitting(options, select, needs)
}

/** Bounds time and memory. Records that need other partitions than the candidates do are placed if these are chosen for others. */
const candidatesMax = 4_096

async function chooseKept({ partitionsMax, query }: PlaceOptions, needs: string): Promise<ReadonlySet<string>> {
  const rows = parquetRowsSql([needs])
  const { rows: firsts } = await query(`SELECT count(*), min(${recordIndex}) AS first_record FROM (${rows})
    WHERE set_key IS NOT NULL GROUP BY set_key ORDER BY count(*) / any_value(needed) DESC, first_record LIMIT ${candidatesMax}`)
  if (firsts.length === 0) return new Set()
  const records = new Map(firsts.map(([count, first]) => [Number(first), Number(count)]))
  const { rows: sets } = await query(`SELECT ${recordIndex}, partitions FROM (${rows})
    WHERE ${recordIndex} IN (${[...records.keys()].join(', ')}) ORDER BY ${recordIndex}`)
  const candidates = sets.map(([first, partitions]) => ({
    records: records.get(Number(first)) ?? 0,
    partitions: String(partitions).split(','),
  }))
  return choosePartitions(candidates, partitionsMax)
}

async function findKept({ view, path, query }: PlaceOptions, kept: ReadonlySet<string>): Promise<readonly Partition[]> {
  if (kept.size === 0) return []
  const columns = folderColumns(view)
  const values = columns.map(({ value }) => value)
  const { rows } = await query(`SELECT ${columns.map(textSql).join(', ')} FROM (${parquetRowsSql([path])})
    WHERE ${partitionHashSql(columns)} IN ${listOf(kept)} GROUP BY ${values.join(', ')} ORDER BY count(*) DESC, ${values.join(', ')}`)
  return rows.map((texts) => partitionOf(columns, texts))
}

type Choice = { readonly places: string; readonly kept: ReadonlySet<string>; readonly all: number }

/** Refuses the records that need other partitions. Returns their number. */
function refuseUnplaced(options: PlaceOptions, { places, kept, all }: Choice): Promise<number> {
  const { view, partitionsMax } = options
  const names = namesOf(folderColumns(view))
  const isKept = kept.size === 0 ? 'false' : `partition IN ${listOf(kept)}`
  const rest = quoteLiteral(` partitions of ${names}, and only ${partitionsMax} of a segment have files`)
  const start = `the segment has ${all} partitions of ${names}, and only ${kept.size} of them have files, for the most records: `
  const reason = `CASE WHEN bool_or(misfit IS NOT NULL) THEN arg_min(misfit, item)
    WHEN count(DISTINCT partition) > ${partitionsMax} THEN concat('the record has rows in ', count(DISTINCT partition), ${rest})
    ELSE concat(${quoteLiteral(start)}, arg_min(shown, item) FILTER (WHERE NOT ${isKept}), ' is not one of them') END`
  return insertRefused(
    options,
    (more) => `SELECT ${recordIndex}, ${verdicts.unplaced}, ${reason} FROM (${parquetRowsSql([places])}) WHERE true${more}
      GROUP BY ${recordIndex} HAVING bool_or(misfit IS NOT NULL OR NOT ${isKept})`,
  )
}

/** Adds the selected records to the refused ones. Returns their number. `select` gets a condition to add. */
async function insertRefused({ records, refused, query }: PlaceOptions, select: (more: string) => string): Promise<number> {
  let inserted = 0
  await cutToFit([{ from: 0, to: records }], async ({ from, to }) => {
    const more = ` AND ${recordIndex} >= ${from} AND ${recordIndex} < ${to}`
    const { rows } = await query(`INSERT INTO ${refused} (record_index, verdict, failed) ${select(more)}`)
    inserted += Number(rows[0]?.[0])
  })
  return inserted
}

function listOf(texts: ReadonlySet<string>): string {
  return `(${[...texts].map(quoteLiteral).join(', ')})`
}
