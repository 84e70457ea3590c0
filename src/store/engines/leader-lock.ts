/**
 * The lock of the control process that leads (store/cluster/leadership.ts): an advisory lock of Postgres, on a connection of its own.
 *
 * Law: at most one process has the lock of a server. It ends with its connection, which Postgres closes if it hears nothing for
 * `leaderIdleMs`. The lock of a server that is older than another one is given up.
 */
import type pg from 'pg'
import { settlesBefore } from '#lib/settles-before.ts'
import { engineLimits } from './limits.ts'
import { connectToPrimary } from './primary.ts'
import type { KnownTimelines, Standing } from './timelines.ts'

/** A lock that one process of an installation has at a time. */
export interface LeaderLock {
  /**
   * Takes the lock or checks that it is still held. Returns the term that began when it was taken; undefined if another process has it. Throws
   * if the database fails: then it is not held.
   */
  hold(): Promise<number | undefined>
  close(): Promise<void>
}

/** It waits for transactions of the leader before. If one takes too long, the lock is given back and taken again. */
const beginTerm = 'update leader set term = term + 1 returning term::text as term'

/** An arbitrary number, the same in every release. The second number is the id of a table: installations may share a database. */
const take = `select pg_try_advisory_lock(723390802, 'epoch'::regclass::oid::int) as is_held`

export class PostgresLeaderLock implements LeaderLock {
  readonly #urls: readonly string[]
  readonly #known: KnownTimelines
  readonly #onLost: () => void
  #connection: pg.Client | undefined
  #standing: Standing | undefined
  /** While the lock is held. */
  #term: number | undefined

  constructor(urls: readonly string[], known: KnownTimelines, onLost: () => void) {
    this.#urls = urls
    this.#known = known
    this.#onLost = onLost
    known.subscribe(() => {
      if (known.isOlder(this.#standing)) this.#connection?.end().catch(() => undefined)
    })
  }

  async hold(): Promise<number | undefined> {
    try {
      this.#connection ??= await this.#connect()
      const connection = this.#connection
      if (this.#term !== undefined) await connection.query('select 1')
      else if ((await connection.query<{ is_held: boolean }>(take)).rows[0]?.is_held === true) {
        const { rows } = await connection.query<{ term: string }>(beginTerm)
        // It may have been lost meanwhile.
        if (this.#connection === connection) this.#term = Number(rows[0]?.term)
      }
      return this.#term
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** Closing the connection releases the lock. */
  async close(): Promise<void> {
    const connection = this.#connection
    this.#connection = undefined
    this.#term = undefined
    // A server that cannot be reached does not confirm the end.
    if (connection !== undefined) await settlesBefore(connection.end(), AbortSignal.timeout(engineLimits.leaderTimeoutMs))
  }

  async #connect(): Promise<pg.Client> {
    const { client: connection, standing } = await connectToPrimary(this.#urls, this.#known, engineLimits.leaderTimeoutMs)
    this.#standing = standing
    connection.once('end', () => {
      if (this.#connection !== connection) return
      const wasHeld = this.#term !== undefined
      this.#connection = undefined
      this.#term = undefined
      if (wasHeld) this.#onLost()
    })
    await connection.query(`set idle_session_timeout = ${engineLimits.leaderIdleMs}`)
    return connection
  }
}
