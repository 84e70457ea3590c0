/**
 * Connections to one Postgres server.
 *
 * Owns: finding out that a server is no longer fit: a standby now, or silent. Does not own: which server is used (primary-pool.ts).
 * Law: a connection is passed out only if the server took writes when it was opened. No query waits for a server that does not respond.
 */
import type { PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { errorCode } from '#lib/files.ts'
import { engineLimits } from './limits.ts'
import { connectionOptions, readOnlyState, requirePrimary } from './primary.ts'
import type { KnownTimelines, Standing } from './timelines.ts'

const int8 = 20

export type ServerPoolOptions = {
  readonly url: string
  readonly known: KnownTimelines
  /** Called when the server refuses writes or does not respond. */
  readonly onUnfit: () => void
  readonly onConnectionLost: (error: Error) => void
}

/**
 * A connection that opens soon, or not at all. The system repeats a lost packet after 1, 3 and 7 seconds: an attempt that began during a cut
 * would go on long after its end.
 */
class QuickClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: engineLimits.openMs })
  }
}

export class ServerPool {
  readonly #options: ServerPoolOptions
  readonly #pool: pg.Pool
  /** Gives up the connections in use. */
  readonly #discards = new Set<() => void>()
  #probing = false
  #standing: Standing | undefined

  constructor(options: ServerPoolOptions) {
    this.#options = options
    this.#pool = new pg.Pool({
      ...connectionOptions(options.url),
      Client: QuickClient,
      max: engineLimits.poolConnectionsMax,
      connectionTimeoutMillis: engineLimits.connectTimeoutMs,
      statement_timeout: engineLimits.statementTimeoutMs,
      idle_in_transaction_session_timeout: engineLimits.idleTransactionMs,
      verify: (client, done) => void this.#verify(client).then(() => done(), done),
      types: {
        getTypeParser: ((oid: number, format?: 'text') =>
          oid === int8 ? parseSafeInteger : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
      },
    })
    this.#pool.on('error', (error) => {
      // It has the whole connection, which is no help in a log.
      Reflect.deleteProperty(error, 'client')
      options.onConnectionLost(error)
    })
    // The pool reports only errors of idle connections. For a connection in use, the query fails.
    this.#pool.on('connect', (client) => client.on('error', () => undefined))
  }

  async connect(): Promise<PostgresPoolClient> {
    const client = await this.#pool.connect()
    const release = (isBroken = false) => {
      if (this.#discards.delete(discard)) client.release(isBroken)
    }
    const discard = () => release(true)
    this.#discards.add(discard)
    // Cursors, which Kysely could use as well, need a package that is not installed.
    const query: unknown = (text: string, parameters: readonly unknown[]) => this.#watch(client.query(text, [...parameters]))
    return { query: query as PostgresPoolClient['query'], release }
  }

  /** As the newest connection found it. */
  get standing(): Standing | undefined {
    return this.#standing
  }

  /** Closes also the connections in use. */
  discardAll(): void {
    for (const discard of this.#discards) discard()
  }

  /** Resolves when all connections are closed. Those in use are closed when they are released. */
  end(): Promise<void> {
    return this.#pool.end()
  }

  async #verify(client: pg.ClientBase): Promise<void> {
    this.#standing = (await requirePrimary(client, this.#options.known)) ?? this.#standing
  }

  async #watch<T>(result: Promise<T>): Promise<T> {
    const probes = setInterval(() => this.#probe(), engineLimits.probeMs)
    probes.unref()
    try {
      return await result
    } catch (error) {
      if (errorCode(error) === readOnlyState) this.#options.onUnfit()
      throw error
    } finally {
      clearInterval(probes)
    }
  }

  /** Finds out why a query takes long. If not even a new connection gets a reply, no query of this server will. */
  async #probe(): Promise<void> {
    if (this.#probing) return
    this.#probing = true
    const { url, onUnfit } = this.#options
    if (!(await responds(url))) {
      onUnfit()
      this.discardAll()
    }
    this.#probing = false
  }
}

async function responds(url: string): Promise<boolean> {
  const client = new pg.Client({ ...connectionOptions(url), connectionTimeoutMillis: engineLimits.probeMs })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return true
  } catch (error) {
    return error instanceof pg.DatabaseError
  } finally {
    client.end().catch(() => undefined)
  }
}

function parseSafeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`integer from the database exceeds 2^53: ${text}`)
  return value
}
