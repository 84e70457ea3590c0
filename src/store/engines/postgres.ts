/** Parts of a store on Postgres. Loaded only when one is opened. */
import { PostgresDialect } from 'kysely'
import { splitPostgresUrl } from '#lib/postgres-urls.ts'
import { type LeaderLock, PostgresLeaderLock } from './leader-lock.ts'
import { PrimaryPool, type PrimaryPoolOptions } from './primary-pool.ts'
import { type ServerState, surveyServers } from './server-survey.ts'
import { KnownTimelines, type TimelineMemory } from './timelines.ts'

export type PostgresOptions = Pick<PrimaryPoolOptions, 'onConnectionLost'> & {
  /** Where the newest timelines are remembered. Without, this process knows only those that it sees. */
  readonly timelines?: TimelineMemory
}

/** The servers that a Postgres URL names. */
export interface DatabaseServers {
  readonly count: number
  /** Asks all of them. Connections to one that is older than another are given up. Never throws. */
  survey(): Promise<readonly SurveyedServer[]>
}

export type SurveyedServer = ServerState & {
  /** Whether this process uses it now. */
  readonly isUsed: boolean
}

export function openPostgres(url: string, { onConnectionLost, timelines }: PostgresOptions) {
  const urls = splitPostgresUrl(url)
  const known = new KnownTimelines(timelines)
  const pool = new PrimaryPool({ urls, known, onConnectionLost })
  const servers: DatabaseServers = {
    count: urls.length,
    async survey() {
      const found = await surveyServers(urls, known)
      return found.map((server, index) => ({ ...server, isUsed: pool.isUsing(index) }))
    },
  }
  return {
    dialect: new PostgresDialect({ pool }),
    newLeaderLock: (onLost: () => void): LeaderLock => new PostgresLeaderLock(urls, known, onLost),
    servers,
  }
}
