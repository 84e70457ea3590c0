/** The first contact of a process with its database. */
import { sql } from 'kysely'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode } from '#lib/files.ts'
import { ownCommand } from '#lib/own-command.ts'
import { splitPostgresUrl } from '#lib/postgres-urls.ts'
import { UserError } from '#lib/user-error.ts'
import { olderServerCode } from '../engines/database-error.ts'
import type { Db, Store } from '../store.ts'
import { migrate, readSchemaVersion } from './migrate.ts'

/** Connects to the database at `url` and migrates it. Returns the number of migrations. Throws a UserError if it cannot be used. */
export async function prepareDatabase(store: Store, url: string): Promise<number> {
  await connect(store, url)
  try {
    return await migrate(store)
  } catch (error) {
    throw store.dialect === 'sqlite'
      ? sqliteProblem(error, url)
      : errorCode(error) === '42501'
        ? postgresProblem(error, url)
        : error
  }
}

/** Connects to the database at `url`. Throws a UserError if it cannot be used, or has the schema of another release. Changes nothing. */
export async function requireCurrentSchema(store: Store, url: string): Promise<void> {
  await connect(store, url)
  const { present, newest } = await readSchemaVersion(store)
  if (present === newest) return
  const versions = `the database has schema version ${present}, and this release of Inlet has ${newest}`
  throw new UserError(
    present > newest
      ? `${versions}: run the newer release`
      : `${versions}: make a backup (${ownCommand('backup DIR')}) and start Inlet, which migrates the database`,
  )
}

async function connect(store: Store, url: string): Promise<void> {
  try {
    if (store.dialect === 'postgres') await requirePostgresVersion(store.db)
    else await sql`select 1`.execute(store.db)
  } catch (error) {
    if (error instanceof UserError) throw error
    throw store.dialect === 'postgres' ? postgresProblem(error, url) : sqliteProblem(error, url)
  }
}

/** The leader's lock needs `idle_session_timeout`. */
const postgresVersionMin = 14

async function requirePostgresVersion(db: Db): Promise<void> {
  const ask = () => sql<{ server_version_num: string }>`show server_version_num`.execute(db)
  // A resolver whose packet was lost asks again only after 5 s. A second attempt then finds the address.
  const { rows } = await ask().catch((error: unknown) => {
    if (!hasConnectTimedOut(error)) throw error
    return ask()
  })
  const version = Math.floor(Number(rows[0]?.server_version_num) / 10_000)
  if (version < postgresVersionMin) {
    throw new UserError(`the database runs Postgres ${version}: upgrade it to Postgres ${postgresVersionMin} or later`)
  }
}

function hasConnectTimedOut(error: unknown): boolean {
  const messages = ['Connection terminated due to connection timeout', 'timeout expired']
  return error instanceof Error && messages.includes(error.message)
}

/** Advice by SQLSTATE. After any other error Postgres is probably not running. */
const remedies: Readonly<Record<string, string>> = {
  '25006': 'name the host of the primary as well in INLET_DATABASE_URL, or wait until a standby takes over',
  [olderServerCode]:
    'start the newer server, or accept this one: inlet database accept, with only its host in INLET_DATABASE_URL',
  '28000': 'correct user and password in INLET_DATABASE_URL',
  '28P01': 'correct user and password in INLET_DATABASE_URL',
  '3D000': 'create it, or correct INLET_DATABASE_URL',
  '42501': 'let this user create tables there',
}

function postgresProblem(error: unknown, url: string): UserError {
  const code = errorCode(error) ?? ''
  const hosts = splitPostgresUrl(url).map((each) => URL.parse(each))
  const where = hosts.every((host) => host?.hostname)
    ? `the database at ${hosts.map((host) => `${host?.hostname}:${host?.port || 5432}`).join(', ')}`
    : 'the database of INLET_DATABASE_URL'
  // An address with several IPs fails with an error that has no message.
  const cause = errorMessage(error) || code
  return new UserError(`${where} cannot be used (${cause}): ${remedies[code] ?? 'start it, or correct INLET_DATABASE_URL'}`, {
    cause: error,
  })
}

/** The message of an error of SQLite says what to do (sqlite.ts), but not about which file. */
function sqliteProblem(error: unknown, path: string): unknown {
  return error instanceof Error && 'errcode' in error ? new UserError(`${path}: ${error.message}`, { cause: error }) : error
}
