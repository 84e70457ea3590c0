/** Asks all servers of a Postgres URL what they are. */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { serverOf } from '#lib/postgres-urls.ts'
import { engineLimits } from './limits.ts'
import { connectionOptions, noWritesError } from './primary.ts'
import { askIfAllowed, type KnownTimelines, OlderServerError, readStanding, type Standing } from './timelines.ts'

/** Result of asking one server. An `older` one takes writes, but a newer one was seen. */
export type ServerState = {
  readonly host: string
  readonly state: 'writable' | 'older' | 'standby' | 'unreachable'
  /** Missing if the server takes no writes, or does not tell. */
  readonly standing?: Standing
  /** Why this installation does not use the server; not of one that takes writes and is not older. */
  readonly error?: unknown
  /** How a server that takes writes confirms them. */
  readonly synchronous?: Synchronous
}

/** Settings of Postgres, as this user has them, and how many standbys are connected; undefined if the server does not tell. */
export type Synchronous = { readonly standby_names: string; readonly commit: string; readonly standbys: number | undefined }

const settings = {
  text: `select current_setting('transaction_read_only') as read_only, current_setting('synchronous_standby_names') as standby_names, current_setting('synchronous_commit') as commit`,
  query_timeout: engineLimits.probeMs,
}

/** Each user may count them, although not see which they are. */
const countStandbys = 'select count(*)::integer as standbys from pg_stat_replication'

/** Asks one server, within a few seconds. Never throws. Host and port are what is left of the URL. */
export async function inspectServer(url: string, known: KnownTimelines): Promise<ServerState> {
  const host = serverOf(url)
  const client = new pg.Client({ ...connectionOptions(url), connectionTimeoutMillis: engineLimits.openMs })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<Omit<Synchronous, 'standbys'> & { read_only: string }>(settings)
    const [row] = rows
    if (row?.read_only !== 'off') return { host, state: 'standby', error: noWritesError() }
    const { standby_names, commit } = row
    const standing = await readStanding(client)
    const connected = await askIfAllowed<{ standbys: number }>(client, countStandbys)
    const synchronous = { standby_names, commit, standbys: connected?.standbys }
    const found = { host, synchronous, ...(standing && { standing }) }
    try {
      if (standing !== undefined) await known.observe(standing)
      return { ...found, state: 'writable' }
    } catch (error) {
      if (error instanceof OlderServerError) return { ...found, state: 'older', error }
      throw error
    }
  } catch (error) {
    return { host, state: 'unreachable', error }
  } finally {
    client.end().catch(() => undefined)
  }
}

/** Asks all servers, and waits for all of them. */
export async function surveyServers(urls: readonly string[], known: KnownTimelines): Promise<readonly ServerState[]> {
  const found = await Promise.all(urls.map((url) => inspectServer(url, known)))
  return found.map((server) => judgeAgain(server, known))
}

/** A server that replied before a newer one did was not yet known to be older. */
function judgeAgain(server: ServerState, known: KnownTimelines): ServerState {
  const error = server.state === 'writable' ? known.problemWith(server.standing) : undefined
  return error === undefined ? server : { ...server, state: 'older', error }
}

/**
 * Asks all servers. As soon as one of them takes writes, the others get only a moment more: they are probably away. One that has not replied by
 * then is undefined.
 */
export async function surveyForUse(
  urls: readonly string[],
  known: KnownTimelines,
): Promise<readonly (ServerState | undefined)[]> {
  const found: (ServerState | undefined)[] = urls.map(() => undefined)
  const { promise: isEnough, resolve } = Promise.withResolvers<void>()
  const ask = async (url: string, index: number) => {
    const server = await inspectServer(url, known)
    found[index] = server
    if (server.state === 'writable') await setTimeout(engineLimits.surveyGraceMs).then(resolve)
  }
  await Promise.race([isEnough, Promise.all(urls.map(ask))])
  return found.map((server) => server && judgeAgain(server, known))
}
