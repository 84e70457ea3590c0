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
  /** Takes the lock or checks that it is still held, and returns whether it is. Throws if the database fails: then it is not. */
  hold(): Promise<boolean>
  close(): Promise<void>
}

/** An arbitrary number, the same in every release. The second number is the id of a table: installations may share a database. */
const take = `select pg_try_advisory_lock(723390802, 'epoch'::regclass::oid::int) as is_held`

export class PostgresLeaderLock implements LeaderLock {
  readonly #urls: readonly string[]
  readonly #known: KnownTimelines
  readonly #onLost: () => void
  #connection: pg.Client | undefined
  #standing: Standing | undefined
  #isHeld = false

  constructor(urls: readonly string[], known: KnownTimelines, onLost: () => void) {
    this.#urls = urls
    this.#known = known
    this.#onLost = onLost
    known.subscribe(() => {
      if (known.isOlder(this.#standing)) this.#connection?.end().catch(() => undefined)
    })
  }

  async hold(): Promise<boolean> {
    try {
      this.#connection ??= await this.#connect()
      if (this.#isHeld) await this.#connection.query('select 1')
      else this.#isHeld = (await this.#connection.query<{ is_held: boolean }>(take)).rows[0]?.is_held === true
      return this.#isHeld
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** Closing the connection releases the lock. */
  async close(): Promise<void> {
    const connection = this.#connection
    this.#connection = undefined
    this.#isHeld = false
    // A server that cannot be reached does not confirm the end.
    if (connection !== undefined) await settlesBefore(connection.end(), AbortSignal.timeout(engineLimits.leaderTimeoutMs))
  }

  async #connect(): Promise<pg.Client> {
    const { client: connection, standing } = await connectToPrimary(this.#urls, this.#known, engineLimits.leaderTimeoutMs)
    this.#standing = standing
    connection.once('end', () => {
      if (this.#connection !== connection) return
      const wasHeld = this.#isHeld
      this.#connection = undefined
      this.#isHeld = false
      if (wasHeld) this.#onLost()
    })
    await connection.query(`set idle_session_timeout = ${engineLimits.leaderIdleMs}`)
    return connection
  }
}
