/**
 * The rows of a view that expands an array, in tables, and what becomes of their records.
 *
 * Owns: the verdict of a record with several rows, the tables. Does not own: the verdicts of rows (views/extraction.ts), and counting what failed
 * casts made NULL (observer.ts).
 * Law: a record is accepted or refused as a whole. If a row has an error, the first such row refuses the record, and none of its rows is written:
 * a re-drive writes all of them. Otherwise it is accepted if a row is written, and dropped if none is. All rows of a record are in one table.
 */
import type { Rows } from '#duckdb/database.ts'
import { isDlq, verdicts } from '#views/extraction.ts'
import type { Observed } from './observer.ts'
import type { Piece } from './pieces.ts'
import { Counts, sumTallies } from './tally.ts'

/** Records and the statement that extracts them. */
export type ExpandedPiece = Piece & { readonly sql: () => string }

type Statements = {
  /** May be called with another statement for the same if a record is not valid JSON. */
  readonly run: (sql: () => string) => Promise<void>
  readonly query: (sql: string) => Promise<Rows>
  /** Writes the rows that meet the condition. */
  readonly write: (rows: () => string, condition: string, file: string) => Promise<Observed>
}

/** SQL that is true for rows that are written. Dropped ones are not observed: there may be many, and their records are counted. */
const isWritten = `CASE WHEN is_refused THEN false
  WHEN verdict_0 = ${verdicts.accepted} AND cast_nulls_0 = 0 AND more_cast_nulls_0 = 0 THEN true
  WHEN verdict_0 IN (${verdicts.filteredOut}, ${verdicts.noItem}) THEN false
  ELSE observed(verdict_0, cast_nulls_0, more_cast_nulls_0, record_index, failed_0) END`

export class ExpandedRows {
  readonly #refused: string
  readonly #tables: readonly string[]
  readonly #statements: Statements

  /** `refused` is the name of the table of refused records. There are at most so many pieces at once. */
  constructor(refused: string, pieces: number, statements: Statements) {
    this.#refused = refused
    this.#tables = Array.from({ length: pieces }, (_, index) => `expanded_${index}`)
    this.#statements = statements
  }

  /** Makes the table of refused records empty. */
  async clear(): Promise<void> {
    await this.dropTables()
    await this.#run(`DELETE FROM ${this.#refused}`)
  }

  /** Writes the rows of the pieces to one file. If it fails, it can be done again. */
  async write(pieces: readonly ExpandedPiece[], file: string): Promise<Observed> {
    const tables = this.#tables.slice(0, pieces.length)
    let [decided, accepted] = [0, 0]
    const refused = new Counts()
    for (const [index, { from, to, sql }] of pieces.entries()) {
      const table = tables[index] ?? ''
      await this.#statements.run(() => `CREATE OR REPLACE TABLE ${table} AS ${sql()}`)
      const ofPiece = `record_index BETWEEN ${from} AND ${to - 1}`
      await this.#run(`DELETE FROM ${this.#refused} WHERE ${ofPiece}`)
      await this.#run(`INSERT INTO ${this.#refused} ${refusedSql(table)}`)
      const { rows } = await this.#statements.query(
        `SELECT count(*), count(*) FILTER (WHERE has_rows AND NOT is_refused) FROM (
           SELECT bool_or(${isDlq('verdict_0')}) AS is_refused, bool_or(verdict_0 = ${verdicts.accepted}) AS has_rows
           FROM ${table} GROUP BY record_index)`,
      )
      decided += Number(rows[0]?.[0])
      accepted += Number(rows[0]?.[1])
      const byVerdict = `SELECT verdict, count(*) FROM ${this.#refused} WHERE ${ofPiece} GROUP BY verdict`
      for (const [verdict, count] of (await this.#statements.query(byVerdict)).rows) {
        refused.addRefused(Number(verdict), Number(count))
      }
    }
    const ofRefused = refused.tally()
    // With an anti-join, DuckDB would observe the rows before it leaves out those of refused records.
    const judged =
      ofRefused.dlq === 0 ? 'SELECT *, false AS is_refused' : `SELECT rows.*, refused.record_index IS NOT NULL AS is_refused`
    const among = ofRefused.dlq === 0 ? '' : ` LEFT JOIN ${this.#refused} AS refused ON refused.record_index = rows.record_index`
    const rows = tables.map((table) => `${judged} FROM ${table} AS rows${among}`).join(' UNION ALL ')
    const { written, tally } = await this.#statements.write(() => rows, isWritten, file)
    // The law of counters is about records. Dropped rows are none of them.
    const sum = sumTallies({ ...tally, dropped: 0 }, ofRefused)
    return { written, accepted, tally: { ...sum, dropped: decided - accepted - ofRefused.dlq } }
  }

  async dropTables(): Promise<void> {
    for (const table of this.#tables) await this.#run(`DROP TABLE IF EXISTS ${table}`)
  }

  #run(sql: string): Promise<void> {
    return this.#statements.run(() => sql)
  }
}

/** SQL for the records that are refused, from their rows: record_index, verdict, failed, item. The first row with an error decides. */
export function refusedSql(rows: string): string {
  return `SELECT record_index, first_error.verdict, first_error.failed, first_error.item FROM (
      SELECT record_index, arg_min(struct_pack(verdict := verdict_0, failed := failed_0, item := item_path), item_index) AS first_error
      FROM ${rows} WHERE ${isDlq('verdict_0')} GROUP BY record_index)`
}
