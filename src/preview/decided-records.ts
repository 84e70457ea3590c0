/**
 * The tables of a comparison: what two definitions make of a piece of records.
 *
 * Owns: deciding records and rows, and which rows are duplicates. Does not own: what is counted (record-comparison.ts), the rules of a row
 * (views/extraction.ts).
 * Law: a row is a duplicate if one of its segment that was read before has its key, as in a file of the view: segments are read from their first
 * record on. A piece that is decided again leaves no trace of the first time.
 */
import type { StatementOptions } from '#duckdb/database.ts'
import { fallBackIfOutOfMemory, type Piece } from '#records/pieces.ts'
import type { RecordDatabase } from '#records/record-database.ts'
import { recordsSql } from '#records/runs-in-sql.ts'
import { type Extraction, extractionSql, isDlq, undecidedSql, verdicts } from '#views/extraction.ts'
import { printExpand } from '#views/json-path.ts'
import { laterVerdicts, type SideCounts } from './compared-side.ts'
import type { PlacedRecord } from './stored-batches.ts'

export type DecidedRecordsOptions = {
  readonly before: SideCounts
  readonly after: SideCounts
  readonly database: RecordDatabase
  /** Bounds for the next statement. */
  readonly statement: () => StatementOptions
}

/** The relation with the outcome of each record by both definitions. */
export const decided = 'decided'
const segments = 'segments'

export class DecidedRecords {
  /** Rows of both that belong together have the same record, or are of the same element of it; null if they cannot be matched. */
  readonly matchedBy: 'record' | 'item' | null
  readonly #options: DecidedRecordsOptions
  /** Whether rows are in tables of their own, because records may have several. */
  readonly #hasRows: boolean
  #commit: string | undefined
  #segment = 0

  constructor(options: DecidedRecordsOptions) {
    this.#options = options
    const [one, other] = [options.before.view.expand, options.after.view.expand]
    this.#hasRows = one !== undefined || other !== undefined
    const isSame = one !== undefined && other !== undefined && printExpand(one) === printExpand(other)
    this.matchedBy = isSame ? 'item' : this.#hasRows ? null : 'record'
  }

  /** The relation with the rows of a side. */
  rowsOf({ names }: SideCounts): string {
    return this.#hasRows ? `${names.prefix}_rows` : decided
  }

  /** The relation with rows of both that belong together, written or not; undefined if they cannot be matched. */
  get pairs(): string | undefined {
    if (this.matchedBy === null) return undefined
    if (!this.#hasRows) return decided
    const { before, after } = this.#options
    const areBothAccepted = [before, after].map(({ names }) => `${names.verdict} = ${verdicts.accepted}`).join(' AND ')
    return `(SELECT * FROM ${this.rowsOf(before)} JOIN ${this.rowsOf(after)} USING (record_index, item_index)
      JOIN (SELECT record_index, ${areBothAccepted} AS are_both_accepted FROM ${decided}) USING (record_index))`
  }

  /** Call it before a batch is decided. */
  async begin(batch: readonly PlacedRecord[]): Promise<void> {
    const deduped = this.#deduped
    if (deduped.length === 0) return
    const starts: string[] = []
    const first = batch[0]?.place.commit_id === this.#commit ? this.#segment : this.#segment + 1
    for (const [index, { place }] of batch.entries()) {
      if (place.commit_id !== this.#commit) this.#segment += 1
      if (place.commit_id !== this.#commit || index === 0) starts.push(`(${index}, ${this.#segment})`)
      this.#commit = place.commit_id
    }
    await this.#run(`CREATE OR REPLACE TABLE ${segments} AS FROM (VALUES ${starts.join(', ')}) AS starts(record_index, segment)`)
    for (const { names } of deduped) {
      const seen = seenKeys(names.prefix)
      await this.#run(`CREATE TABLE IF NOT EXISTS ${seen} (segment INTEGER, key UHUGEINT)`)
      // No record of the segments before it follows.
      await this.#run(`CREATE OR REPLACE TABLE ${seen} AS FROM ${seen} WHERE segment >= ${first}`)
    }
  }

  /** The tables that must be there for the next batch. */
  get kept(): ReadonlySet<string> {
    return new Set(this.#deduped.map(({ names }) => seenKeys(names.prefix)))
  }

  async decide(piece: Piece): Promise<void> {
    if (!this.#hasRows) await this.#run(`CREATE OR REPLACE TABLE ${decided} AS ${this.#togetherSql(piece)}`)
    else for (const side of this.#sides) await this.#expand(side, extractionSql([side.view], recordsIn(piece)))
    await this.#finish()
  }

  /** Decides a record that needs too much memory by both at once: it may be too complex for one of them alone. */
  async decideAlone(row: Piece): Promise<void> {
    for (const side of this.#sides) {
      const extraction = extractionSql([side.view], recordsIn(row))
      const undecided = { ...extraction, sql: undecidedSql(side.view, recordsIn(row)) }
      const decide = (each: Extraction) => (this.#hasRows ? this.#expand(side, each) : this.#decideOne(side, each))
      await fallBackIfOutOfMemory(
        () => decide(extraction),
        () => decide(undecided),
      )
    }
    if (!this.#hasRows) {
      const [one, other] = this.#sides.map(({ names }) => `only_${names.prefix}`)
      await this.#run(`CREATE OR REPLACE TABLE ${decided} AS SELECT * FROM ${one} JOIN ${other} USING (record_index)`)
    }
    await this.#finish()
  }

  /** Keeps the keys of the piece, once everything of it is counted. */
  async remember(): Promise<void> {
    for (const { names } of this.#deduped)
      await this.#run(`INSERT INTO ${seenKeys(names.prefix)} SELECT segment, key FROM ${newKeys(names.prefix)} WHERE is_first`)
  }

  get #sides(): readonly SideCounts[] {
    return [this.#options.before, this.#options.after]
  }

  get #deduped(): readonly SideCounts[] {
    return this.#sides.filter(({ view }) => view.layout.dedupeBy.length > 0)
  }

  #togetherSql(piece: Piece): string {
    const [before, after] = [this.#options.before, this.#options.after]
    const { sql, values } = extractionSql([before.view, after.view], recordsIn(piece))
    const sides = [before.names.select(0, values[0] ?? []), after.names.select(1, values[1] ?? [])]
    return `SELECT record_index, is_binary, ${sides.join(', ')} FROM (${sql})`
  }

  async #decideOne({ names }: SideCounts, { sql, values: [values = []] }: Extraction): Promise<void> {
    const passed = names.prefix === 'before' ? 'record_index, is_binary' : 'record_index'
    await this.#run(`CREATE OR REPLACE TABLE only_${names.prefix} AS SELECT ${passed}, ${names.select(0, values)} FROM (${sql})`)
  }

  /** Makes the rows of one side. */
  async #expand(side: SideCounts, { sql, values: [values = []] }: Extraction): Promise<void> {
    const { names, view } = side
    const rows = this.rowsOf(side)
    const item = view.expand === undefined ? ['CAST(0 AS BIGINT)', 'CAST(NULL AS VARCHAR)'] : ['item_index', 'item_path']
    const of = `record_index, ${item[0]} AS item_index, ${item[1]} AS ${names.item}, is_binary AS ${names.prefix}_is_binary`
    await this.#run(`CREATE OR REPLACE TABLE ${rows} AS SELECT ${of}, ${names.select(0, values)} FROM (${sql})`)
    if (view.expand === undefined) return
    // An error in one row refuses the record: none of its rows is written.
    const refused = `SELECT record_index FROM ${rows} WHERE ${isDlq(names.verdict)}`
    await this.#run(
      `UPDATE ${rows} SET ${names.verdict} = ${laterVerdicts.ofRefused} WHERE NOT ${isDlq(names.verdict)} AND record_index IN (${refused})`,
    )
  }

  async #finish(): Promise<void> {
    for (const side of this.#deduped) await this.#findDuplicates(side)
    if (!this.#hasRows) return
    const [one, other] = this.#sides.map((side) => `(${recordVerdictsSql(side, this.rowsOf(side))})`)
    await this.#run(`CREATE OR REPLACE TABLE ${decided} AS SELECT * FROM ${one} JOIN ${other} USING (record_index)`)
  }

  async #findDuplicates(side: SideCounts): Promise<void> {
    const { names, view } = side
    const [rows, keys] = [this.rowsOf(side), newKeys(names.prefix)]
    const columns = view.layout.dedupeBy.map((index) => ({ value: names.value(index), column: view.columns[index] }))
    const texts = columns.map(({ value, column }) => {
      const text = `CAST(${value} AS VARCHAR)`
      // Zero has two texts.
      return column?.type.scalar === 'FLOAT' || column?.type.scalar === 'DOUBLE'
        ? `CASE WHEN ${value} = 0 THEN '0' ELSE ${text} END`
        : text
    })
    const key = `md5_number(concat(${texts.map((text) => `strlen(${text}), ':', ${text}`).join(', ')}))`
    const isWritten = [`${names.verdict} = ${verdicts.accepted}`, ...columns.map(({ value }) => `${value} IS NOT NULL`)]
    await this.#run(
      `CREATE OR REPLACE TABLE ${keys} AS SELECT place, segment, key, place = min(place) OVER (PARTITION BY segment, key)
           AND NOT EXISTS (FROM ${seenKeys(names.prefix)} AS seen WHERE seen.segment = keyed.segment AND seen.key = keyed.key) AS is_first
         FROM (SELECT rows.rowid AS place, segment, ${key} AS key
           FROM ${rows} AS rows ASOF JOIN ${segments} AS segments ON rows.record_index >= segments.record_index
           WHERE ${isWritten.join(' AND ')}) AS keyed`,
    )
    await this.#run(
      `UPDATE ${rows} SET ${names.verdict} = ${laterVerdicts.duplicate} WHERE rowid IN (SELECT place FROM ${keys} WHERE NOT is_first)`,
    )
  }

  #run(sql: string) {
    return this.#options.database.connection.query(sql, this.#options.statement())
  }
}

type Prefix = SideCounts['names']['prefix']
const seenKeys = (prefix: Prefix) => `seen_${prefix}`
const newKeys = (prefix: Prefix) => `keys_${prefix}`

/** SQL for the records of a side from its rows. The first row with an error decides; otherwise a record is accepted if one of its rows is. */
function recordVerdictsSql({ names }: SideCounts, rows: string): string {
  const { verdict, failed, item, prefix } = names
  const isBinary = prefix === 'before' ? ', is_binary' : ''
  return `SELECT record_index${isBinary}, coalesce(error.verdict, best) AS ${verdict}, error.failed AS ${failed}, error.item AS ${item} FROM (
    SELECT record_index, bool_or(${prefix}_is_binary) AS is_binary, max(${verdict}) AS best,
      arg_min(struct_pack(verdict := ${verdict}, failed := ${failed}, item := ${item}), item_index) FILTER (WHERE ${isDlq(verdict)}) AS error
    FROM ${rows} GROUP BY record_index)`
}

function recordsIn(piece: Piece) {
  return {
    guarded: true,
    records: `(SELECT *, payload IS NULL AS is_binary FROM (${recordsSql([piece])}))`,
    passThrough: ['record_index', 'is_binary'],
  } as const
}
