/**
 * A database, SQLite or Postgres, and its transactions.
 *
 * Law: inside `transact` use only the `db` that it passes. SQLite has one connection, so a call on `store.db` from inside would
 * deadlock.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { dirname, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Kysely, type Transaction } from 'kysely'
import { AppError } from '#errors.ts'
import { systemFiles } from '#lib/files.ts'
import { ownCommand } from '#lib/own-command.ts'
import { UserError } from '#lib/user-error.ts'
import { databaseErrorKind, translateErrors } from './engines/database-error.ts'
import type { LeaderLock } from './engines/leader-lock.ts'
import type { DatabaseServers, PostgresOptions } from './engines/postgres.ts'
import { openSqlite } from './engines/sqlite.ts'
import { requireIntactLog } from './engines/sqlite-log.ts'
import { requireTerm } from './leader-term.ts'
import { storeLimits } from './limits.ts'
import type { Database } from './schema.ts'

export type Db = Kysely<Database>
/** A `Db` in a transaction. Functions that require it make several changes that belong together. */
export type Tx = Transaction<Database>

export type Store = {
  readonly db: Db
  readonly dialect: 'sqlite' | 'postgres'
  /** Undefined on SQLite, which only one control process uses. `onLost` is called if the connection ends while it has the lock. */
  readonly newLeaderLock: ((onLost: () => void) => LeaderLock) | undefined
  /** Undefined on SQLite. */
  readonly servers?: DatabaseServers
  /** Empties the write-ahead log of SQLite, if nobody uses it. Returns whether it is empty. */
  readonly checkpoint?: () => boolean
  close(): Promise<void>
}

export type StoreOptions = Partial<PostgresOptions> & {
  /** Throw a UserError instead of creating an SQLite file, or using one whose log is damaged: for commands, which may run in the wrong directory. */
  readonly mustExist?: boolean
}

/** Opens `postgres://…`, or the SQLite file at a path. Connects at first use and creates the file's directory. */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  if (/^postgres(ql)?:\/\//.test(url)) return openOnPostgres(url, options)
  if (options.mustExist && (await systemFiles.bytes(url)) === undefined) {
    throw new UserError(
      `there is no database at ${resolve(url)}: set INLET_DATA_DIR or INLET_DATABASE_URL, or create it with a first start (${ownCommand('start')})`,
    )
  }
  if (options.mustExist) await requireIntactLog(systemFiles, url)
  await systemFiles.makeDirectory(dirname(url))
  const { dialect, checkpoint } = openSqlite(url)
  const db = new Kysely<Database>({ dialect })
  return { db, dialect: 'sqlite', newLeaderLock: undefined, checkpoint, close: () => db.destroy() }
}

/** Loads the Postgres client, which an installation on SQLite never needs. */
async function openOnPostgres(url: string, options: StoreOptions): Promise<Store> {
  const { openPostgres } = await import('./engines/postgres.ts')
  const { dialect, newLeaderLock, servers } = openPostgres(url, { onConnectionLost: () => undefined, ...options })
  const db = new Kysely<Database>({ dialect })
  return { db, dialect: 'postgres', newLeaderLock, servers, close: () => db.destroy() }
}

/** Writes that are committed together with the change of a call, such as its audit event. */
export type Companion = {
  readonly write: (db: Tx) => Promise<void>
  /** Whether the call changed nothing. */
  isSkipped: boolean
}

const companions = new AsyncLocalStorage<Companion>()

/** Runs `work`. Each transaction that it makes by `transact` ends with `companion`, so that both are committed or none. */
export function withCompanion<T>(companion: Companion, work: () => T): T {
  return companions.run(companion, work)
}

/** Says that this call changes nothing: what it asks for was done before. */
export function skipCompanion(): void {
  const companion = companions.getStore()
  if (companion !== undefined) companion.isSkipped = true
}

/**
 * Runs `work` in one transaction. Retries it after a collision, a bounded number of times: `work` must only change the database.
 * Postgres runs at read committed, so constraints and guarded updates decide between concurrent callers, not reads.
 * Throws OlderLeaderTermError in work of a leader whose term is over.
 */
export async function transact<T>(store: Store, work: (db: Tx) => Promise<T>): Promise<T> {
  const companion = companions.getStore()
  return retryCollisions(() =>
    store.db.transaction().execute(async (db) => {
      await requireTerm(db, store.dialect)
      const result = await work(db)
      if (companion?.isSkipped === false) await companion.write(db)
      return result
    }),
  )
}

/** Runs read-only `work` on one consistent state of the database. */
export async function readConsistently<T>(store: Store, work: (db: Tx) => Promise<T>): Promise<T> {
  const transaction = store.db.transaction()
  return retryCollisions(() =>
    store.dialect === 'postgres'
      ? transaction.setIsolationLevel('repeatable read').setAccessMode('read only').execute(work)
      : transaction.execute(work),
  )
}

async function retryCollisions<T>(attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await translateErrors(attempt())
    } catch (error) {
      const kind = databaseErrorKind(error)
      if (kind !== 'collision') throw error
      if (attempts >= storeLimits.transactionAttemptsMax)
        throw new AppError('unavailable', 'the database is busy', { cause: error, retryAfterSeconds: 1 })
      await setTimeout(Math.random() * Math.min(storeLimits.transactionRetryDelayMsMax, 5 * 2 ** attempts))
    }
  }
}
