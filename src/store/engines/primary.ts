/** Connections to the primary of a Postgres that may have standbys. */
import pg from 'pg'
import { engineLimits } from './limits.ts'

/** Options of every connection. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'inlet',
    keepAlive: true,
    keepAliveInitialDelayMillis: engineLimits.keepAliveMs,
  }
}

/** The types of `pg` do not know that a query can have a timeout. */
const question = { text: 'show transaction_read_only', query_timeout: engineLimits.probeMs }

/** Throws if the server does not take writes: it is a standby, or became one. */
export async function requirePrimary(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>(question)
  if (rows[0]?.transaction_read_only !== 'off') {
    throw Object.assign(new Error('the server is a standby, which takes no writes'), { code: readOnlyState })
  }
}

/** SQLSTATE of a write that a server refuses because it takes none. */
export const readOnlyState = '25006'

/** Connects to the first of these hosts that is the primary, within `timeoutMs` for each. Throws the error of the last one. */
export async function connectToPrimary(urls: readonly string[], timeoutMs: number): Promise<pg.Client> {
  let failure: unknown
  for (const url of urls) {
    const client = new pg.Client({ ...connectionOptions(url), connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs })
    // An error of a connection in use also fails its query.
    client.on('error', () => undefined)
    try {
      await client.connect()
      await requirePrimary(client)
      return client
    } catch (error) {
      failure = error
      client.end().catch(() => undefined)
    }
  }
  throw failure
}
