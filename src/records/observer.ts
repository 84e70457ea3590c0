/**
 * Counts the rows that a view does not simply accept, and stores the refused ones, while a statement writes the accepted rows.
 *
 * Owns: the function `observed` in DuckDB, the tables of refused rows. Does not own: the verdicts (views/extraction.ts), the DLQ (dlq.ts).
 * Law: each row is observed once: a statement that fails leaves no trace, and the work can be done again. RecordTable asserts it: rows
 * written, dropped and refused add up to the number of records.
 */
import type { Connection, RowAppender } from '#duckdb/database.ts'
import { assert } from '#lib/assert.ts'
import { verdicts } from '#views/extraction.ts'
import { Counts, sumTallies, type Tally } from './tally.ts'

/** Outcome of a statement for the rows that it read. */
export type Observed = {
  /** Rows. */
  readonly written: number
  /** Records with rows that were written. */
  readonly accepted: number
  readonly tally: Tally
}

/** Returns the outcome of several statements. */
export function sumObserved(all: readonly Observed[]): Observed {
  const none: Observed = { written: 0, accepted: 0, tally: new Counts().tally() }
  return all.reduce(
    (sum, { written, accepted, tally }) => ({
      written: sum.written + written,
      accepted: sum.accepted + accepted,
      tally: sumTallies(sum.tally, tally),
    }),
    none,
  )
}

/** SQL that is true for accepted rows. Most rows of most views have no failed cast, and never leave DuckDB. */
export function isAccepted(view: number): string {
  const [verdict, castNulls, more] = [`verdict_${view}`, `cast_nulls_${view}`, `more_cast_nulls_${view}`]
  return `CASE WHEN ${verdict} = ${verdicts.accepted} AND ${castNulls} = 0 AND ${more} = 0 THEN true
    ELSE observed(${verdict}, ${castNulls}, ${more}, record_index, failed_${view}) END`
}

/** Thrown instead of an outcome if a row has an error, where it is asked for. */
export class ErrorInRow extends Error {
  override readonly name = 'ErrorInRow'
}

export class Observer {
  /** A separate connection, because the other one is busy while rows are observed. */
  readonly #connection: Connection
  #refused: RowAppender | undefined
  #counts = new Counts()
  #stopsAtError = false
  #foundError = false

  constructor(connection: Connection) {
    this.#connection = connection
    connection.register({
      name: 'observed',
      parameters: ['SMALLINT', 'BIGINT', 'BIGINT', 'BIGINT', 'VARCHAR'],
      decide: (argument) => this.#observe(argument),
    })
  }

  /** Creates an empty table of refused rows: record_index, verdict, failed, and for views that expand an array the item with the error. */
  async createRefused(refused: string): Promise<void> {
    await this.#connection.run(
      `CREATE OR REPLACE TABLE ${refused} (record_index BIGINT, verdict SMALLINT, failed VARCHAR, item VARCHAR)`,
    )
  }

  /**
   * Counts the rows that the statement of `write` observes, and appends the refused ones to the table. If it fails, neither happens.
   * With `stopsAtError` it throws ErrorInRow at the first row with an error in a column, or for which patterns are too slow.
   */
  async observe(refused: string, write: () => Promise<number>, stopsAtError = false): Promise<Observed> {
    this.#stopsAtError = stopsAtError
    this.#foundError = false
    await this.#connection.run('BEGIN')
    const observed = await this.#append(refused, write).catch(async (error: unknown) => {
      await this.#connection.run('ROLLBACK')
      throw this.#foundError ? new ErrorInRow('a row has an error', { cause: error }) : error
    })
    await this.#connection.run('COMMIT')
    return observed
  }

  async #append(refused: string, write: () => Promise<number>): Promise<Observed> {
    const appender = await this.#connection.appender(refused)
    this.#refused = appender
    this.#counts = new Counts()
    try {
      const written = await write()
      appender.flushSync()
      return { written, accepted: written, tally: this.#counts.tally() }
    } finally {
      this.#refused = undefined
      close(appender)
    }
  }

  #observe(argument: (position: number) => unknown): boolean {
    const verdict = argument(0) as number
    // Patterns can be too slow for one element of a record.
    if ((verdict > 0 || verdict === verdicts.tooComplex) && this.#stopsAtError) {
      this.#foundError = true
      throw new ErrorInRow('a row has an error')
    }
    const isDropped = [verdicts.filteredOut, verdicts.filterUnknown, verdicts.noItem].some((each) => each === verdict)
    // A value only became NULL if the row was not rejected for another reason.
    if (verdict === verdicts.accepted || verdict === verdicts.filterUnknown) {
      this.#counts.addCastNulls(argument(1) as bigint, argument(2) as bigint)
    }
    if (isDropped) this.#counts.addDropped()
    else if (verdict !== verdicts.accepted) this.#refuse(verdict, argument(3) as bigint, argument(4) as string | null)
    return verdict === verdicts.accepted
  }

  #refuse(verdict: number, recordIndex: bigint, failed: string | null): void {
    const refused = this.#refused
    assert(refused !== undefined, 'no statement is being observed')
    this.#counts.addRefused(verdict)
    refused.appendBigInt(recordIndex)
    refused.appendSmallInt(verdict)
    if (failed === null) refused.appendNull()
    else refused.appendVarchar(failed)
    refused.appendNull()
    refused.endRow()
  }
}

/** An appender that failed before fails again when it is closed. The first error is the one to report. */
function close(appender: RowAppender): void {
  try {
    appender.closeSync()
  } catch {
    // Its rows are rolled back.
  }
}
