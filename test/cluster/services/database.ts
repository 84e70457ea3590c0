/**
 * Two Postgres servers on hosts of their own: one that takes changes, and a standby that confirms each of them, so that a failover loses
 * nothing.
 *
 * Law: at most one server takes changes until `returnOld`. `failOver` ends the first before it promotes the other, as a fence would.
 */
import pg from 'pg'
import { type Postgres, startPostgres } from '../../../tools/services/postgres.ts'
import { until } from '../../support/until.ts'
import type { Host } from '../network/host.ts'

const attachMsMax = 30_000

type Server = { readonly host: Host; postgres: Postgres }

/** A standby looks for its primary again after 5 s by default, and until then no change is confirmed: docs/operations.md. */
const common = { durable: true, settings: { wal_retrieve_retry_interval: '200ms' } } as const

export class DatabasePair implements AsyncDisposable {
  #primary: Server
  #standby: Server

  private constructor(primary: Server, standby: Server) {
    this.#primary = primary
    this.#standby = standby
  }

  static async start(hosts: readonly [Host, Host]): Promise<DatabasePair> {
    const [first, second] = hosts
    const postgres = await startPostgres({ ...common, place: first.place })
    const standby = await startPostgres({ ...common, place: second.place, standbyOf: postgres.url })
    const pair = new DatabasePair({ host: first, postgres }, { host: second, postgres: standby })
    await pair.#requireStandby()
    return pair
  }

  get primaryHost(): Host {
    return this.#primary.host
  }

  /** Names both servers: control finds the one that takes changes. */
  get url(): string {
    const [first, second] = [this.#primary, this.#standby].map(({ postgres }) => new URL(postgres.url).host).toSorted()
    return `postgres://inlet@${first},${second}/postgres`
  }

  killPrimary(): Promise<void> {
    return this.#primary.postgres.kill()
  }

  startPrimary(): Promise<void> {
    return this.#primary.postgres.start()
  }

  /** Ends the server that takes changes and promotes the other. */
  async failOver(): Promise<void> {
    await this.#primary.postgres.kill()
    await query(this.#standby.postgres.url, 'SELECT pg_promote()')
    await query(this.#standby.postgres.url, `ALTER SYSTEM SET synchronous_standby_names = ''`)
    await query(this.#standby.postgres.url, 'SELECT pg_reload_conf()')
    const [primary, standby] = [this.#standby, this.#primary]
    this.#primary = primary
    this.#standby = standby
  }

  /** Starts the server that was ended by `failOver` as the primary that it was. */
  returnOld(): Promise<void> {
    return this.#standby.postgres.start()
  }

  /** Returns how many commits the server has that was ended by `failOver`. */
  async countOldCommits(): Promise<number> {
    const [row] = await query(this.#standby.postgres.url, 'SELECT count(*)::int AS count FROM commits')
    return (row as { readonly count: number }).count
  }

  /** Makes the server that was ended a standby again, on its port. */
  async rejoin(): Promise<void> {
    const { host, postgres } = this.#standby
    const port = Number(new URL(postgres.url).port)
    await postgres.stop()
    this.#standby.postgres = await startPostgres({
      ...common,
      place: host.place,
      port,
      standbyOf: this.#primary.postgres.url,
    })
    await this.#requireStandby()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#standby.postgres.stop(), this.#primary.postgres.stop()])
  }

  /** From now on a change is confirmed only once the standby has it. */
  async #requireStandby(): Promise<void> {
    const { url } = this.#primary.postgres
    const isAttached = async () => (await query(url, `SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'`)).length > 0
    await until('the standby to follow', isAttached, attachMsMax)
    await query(url, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
    await query(url, 'SELECT pg_reload_conf()')
  }
}

async function query(url: string, sql: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
