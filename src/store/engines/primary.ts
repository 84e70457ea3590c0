/** Connections to the primary of a Postgres that may have standbys. */
import pg from 'pg'
import { engineLimits } from './limits.ts'
import { type KnownTimelines, readStanding, type Standing } from './timelines.ts'

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

/**
 * Throws if the server does not take writes: it is a standby, or became one. Throws OlderServerError if a newer one was seen. Returns its
 * standing, if it tells.
 */
export async function requirePrimary(client: pg.ClientBase, known: KnownTimelines): Promise<Standing | undefined> {
  const { rows } = await client.query<{ transaction_read_only: string }>(question)
  if (rows[0]?.transaction_read_only !== 'off') throw noWritesError()
  const standing = await readStanding(client)
  if (standing !== undefined) await known.observe(standing)
  return standing
}

/** SQLSTATE of a write that a server refuses because it takes none. */
export const readOnlyState = '25006'

export function noWritesError(): Error {
  return Object.assign(new Error('the server is a standby, which takes no writes'), { code: readOnlyState })
}

export type PrimaryConnection = { readonly client: pg.Client; readonly standing: Standing | undefined }

/** Connects to the first of these hosts that is the primary, within `timeoutMs` for each. Throws the error of the last one. */
export async function connectToPrimary(
  urls: readonly string[],
  known: KnownTimelines,
  timeoutMs: number,
): Promise<PrimaryConnection> {
  let failure: unknown
  for (const url of urls) {
    const client = new pg.Client({ ...connectionOptions(url), connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs })
    // An error of a connection in use also fails its query.
    client.on('error', () => undefined)
    try {
      await client.connect()
      return { client, standing: await requirePrimary(client, known) }
    } catch (error) {
      failure = error
      client.end().catch(() => undefined)
    }
  }
  throw failure
}
