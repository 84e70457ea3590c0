/**
 * Sees the rows that a view doesn't simply accept, while the statement that writes the others runs: counts them, and keeps the refused.
 *
 * Owns: the function `observed` in DuckDB, the tables of refused rows. Does not own: the verdicts (extraction.ts), what the DLQ shows.
 * Law: each row is seen once. RecordTable asserts it: rows written, dropped and refused are as many as there are records.
 */
import type { Connection, RowAppender } from '#duckdb/database.ts'
import { assert } from '#lib/assert.ts'
import { columnOf, isMissing, MASK_COLUMNS, verdicts } from './extraction.ts'

export type Tally = {
  readonly dropped: number
  readonly dlq: number
  readonly castNulls: number
  /** By column; a column that had none of it may be absent. */
  readonly ofColumns: ReadonlyMap<number, ColumnTally>
}
/** Values that became NULL because their cast failed; DLQ rows by their error. */
export type ColumnTally = { readonly castNulls: number; readonly castDlq: number; readonly missing: number }

const maskParameters = [1, 2] as const
/** Masks that are counted before they are added to the columns: hostile records may have each another. */
const MASKS_MAX = 1_024

/** SQL that is true for the rows that are accepted. Most rows of most views are sound, and don't leave DuckDB for that. */
export function isAccepted(view: number): string {
  const [verdict, castNulls, more] = [`verdict_${view}`, `cast_nulls_${view}`, `more_cast_nulls_${view}`]
  return `CASE WHEN ${verdict} = ${verdicts.accepted} AND ${castNulls} = 0 AND ${more} = 0 THEN true
    ELSE observed(${verdict}, ${castNulls}, ${more}, record_index, failed_${view}) END`
}

export class Observer {
  /** A connection of its own: the other one is busy when rows are seen. */
  readonly #connection: Connection
  #refused: RowAppender | undefined
  #dropped = 0
  #counts = new TallyCounts()

  constructor(connection: Connection) {
    this.#connection = connection
    connection.register({
      name: 'observed',
      parameters: ['SMALLINT', 'BIGINT', 'BIGINT', 'BIGINT', 'VARCHAR'],
      decide: (argument) => this.#see(argument),
    })
  }

  /** Counts what the statement of `write` asks about, and keeps its refused rows in a new table: record_index, verdict, failed. */
  async observe(refused: string, write: () => Promise<number>): Promise<{ readonly written: number; readonly tally: Tally }> {
    await this.#connection.run(`CREATE OR REPLACE TABLE ${refused} (record_index BIGINT, verdict SMALLINT, failed VARCHAR)`)
    const appender = await this.#connection.appender(refused)
    this.#refused = appender
    this.#dropped = 0
    this.#counts = new TallyCounts()
    try {
      const written = await write()
      appender.flushSync()
      return { written, tally: { dropped: this.#dropped, ...this.#counts.tally() } }
    } finally {
      this.#refused = undefined
      appender.closeSync()
    }
  }

  #see(argument: (position: number) => unknown): boolean {
    const verdict = argument(0) as number
    const isDropped = verdict === verdicts.filteredOut || verdict === verdicts.filterUnknown
    // A value became NULL only where the row was not sent elsewhere for other reasons.
    if (verdict === verdicts.accepted || verdict === verdicts.filterUnknown) {
      for (const position of maskParameters) this.#counts.addCastNulls(position - 1, argument(position) as bigint)
    }
    if (isDropped) this.#dropped += 1
    else if (verdict !== verdicts.accepted) this.#refuse(verdict, argument(3) as bigint, argument(4) as string | null)
    return verdict === verdicts.accepted
  }

  #refuse(verdict: number, recordIndex: bigint, failed: string | null): void {
    const refused = this.#refused
    assert(refused !== undefined, 'a statement is observed')
    this.#counts.addRefused(verdict)
    refused.appendBigInt(recordIndex)
    refused.appendSmallInt(verdict)
    if (failed === null) refused.appendNull()
    else refused.appendVarchar(failed)
    refused.endRow()
  }
}

class TallyCounts {
  readonly #verdicts = new Map<number, number>()
  readonly #masks = [new Map<bigint, number>(), new Map<bigint, number>()] as const
  readonly #castNulls = new Map<number, number>()

  addRefused(verdict: number): void {
    count(this.#verdicts, verdict, 1)
  }

  addCastNulls(position: number, mask: bigint): void {
    const masks = this.#masks[position]
    if (mask === 0n || masks === undefined) return
    count(masks, mask, 1)
    if (masks.size >= MASKS_MAX) this.#addMasks()
  }

  tally(): Omit<Tally, 'dropped'> {
    this.#addMasks()
    const ofColumns = new Map<number, ColumnTally>()
    const add = (column: number, change: Partial<ColumnTally>) =>
      ofColumns.set(column, { castNulls: 0, castDlq: 0, missing: 0, ...ofColumns.get(column), ...change })
    for (const [column, castNulls] of this.#castNulls) add(column, { castNulls })
    for (const [verdict, rows] of this.#verdicts) {
      if (verdict > 0) add(columnOf(verdict), isMissing(verdict) ? { missing: rows } : { castDlq: rows })
    }
    const sum = (counts: ReadonlyMap<unknown, number>): number => counts.values().reduce((all, each) => all + each, 0)
    return { dlq: sum(this.#verdicts), castNulls: sum(this.#castNulls), ofColumns }
  }

  #addMasks(): void {
    for (const [position, masks] of this.#masks.entries()) {
      for (const [mask, rows] of masks) {
        for (let bit = 0; bit < MASK_COLUMNS; bit += 1) {
          if ((mask >> BigInt(bit)) & 1n) count(this.#castNulls, position * MASK_COLUMNS + bit, rows)
        }
      }
      masks.clear()
    }
  }
}

function count<K>(counts: Map<K, number>, key: K, more: number): void {
  counts.set(key, (counts.get(key) ?? 0) + more)
}
