/** Parts of a store on Postgres. Loaded only when one is opened. */
import { PostgresDialect } from 'kysely'
import { splitPostgresUrl } from '#lib/postgres-urls.ts'
import { type LeaderLock, PostgresLeaderLock } from './leader-lock.ts'
import { PrimaryPool, type PrimaryPoolOptions } from './primary-pool.ts'

export type PostgresOptions = Pick<PrimaryPoolOptions, 'onConnectionLost'>

export function openPostgres(url: string, options: PostgresOptions) {
  const urls = splitPostgresUrl(url)
  return {
    dialect: new PostgresDialect({ pool: new PrimaryPool({ urls, ...options }) }),
    newLeaderLock: (onLost: () => void): LeaderLock => new PostgresLeaderLock(urls, onLost),
  }
}
