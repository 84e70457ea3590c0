/**
 * Databases for tests: a new one for each test, removed at its end.
 * Postgres is used if INLET_TEST_POSTGRES is the address of a server where the user may create databases. `npm run test:services` starts one.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { describe } from 'vitest'
import { migrate } from '#store/migrations/migrate.ts'
import { openStore, type Store } from '#store/store.ts'

export const postgresUrl = process.env['INLET_TEST_POSTGRES']

export type DatabaseKind = 'sqlite' | 'postgres'

/** An empty database or schema. */
export type TestDatabase = AsyncDisposable & { readonly url: string }

/** The database of suites that run on one only: Postgres if there is one. */
const preferredDatabase: DatabaseKind = postgresUrl === undefined ? 'sqlite' : 'postgres'

export async function newDatabase(kind: DatabaseKind = preferredDatabase): Promise<TestDatabase> {
  return kind === 'sqlite' ? newSqlite() : newPostgres()
}

/** A database with all tables. On SQLite it is a copy: that takes a tenth of the time of the migrations. */
export async function newMigratedDatabase(kind: DatabaseKind = preferredDatabase): Promise<TestDatabase> {
  const database = await newDatabase(kind)
  if (kind === 'sqlite') {
    template ??= readTemplate()
    writeFileSync(database.url, await template)
  } else await migrateDatabase(database)
  return database
}

/** The file of an SQLite database with all tables, once for each worker. */
let template: Promise<Buffer> | undefined

async function readTemplate(): Promise<Buffer> {
  await using database = newSqlite()
  await migrateDatabase(database)
  return readFileSync(database.url)
}

async function migrateDatabase({ url }: TestDatabase): Promise<void> {
  const store = await openStore(url)
  try {
    await migrate(store)
  } finally {
    await store.close()
  }
}

/** Opens a store with all tables on a database of its own. */
export type TestStore = Store & AsyncDisposable & { readonly url: string }

export async function newStore(kind: DatabaseKind): Promise<TestStore> {
  return openTestStore(await newMigratedDatabase(kind))
}

/** Opens a store, and removes the database with it. */
export async function openTestStore(database: TestDatabase): Promise<TestStore> {
  const store = await openStore(database.url)
  return {
    ...store,
    url: database.url,
    async [Symbol.asyncDispose]() {
      await store.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Declares a suite that runs on SQLite, or on Postgres where there is one: `npm test` has run it on SQLite then. */
export function describeDatabases(name: string, suite: (kind: DatabaseKind) => void): void {
  if (postgresUrl !== undefined) {
    describe(`${name} on Postgres`, () => suite('postgres'))
    return
  }
  describe(`${name} on SQLite`, () => suite('sqlite'))
  describe.skip(`${name} on Postgres (skipped: INLET_TEST_POSTGRES is not set, see npm run test:services)`, () =>
    suite('postgres'))
}

function newSqlite(): TestDatabase {
  const directory = mkdtempSync(join(tmpdir(), 'inlet-sqlite-'))
  return {
    url: join(directory, 'inlet.db'),
    async [Symbol.asyncDispose]() {
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Uses a schema instead of a database: it is just as empty and ten times faster to create. */
async function newPostgres(): Promise<TestDatabase> {
  const name = `inlet_test_${randomUUID().replaceAll('-', '')}`
  await onPostgres(`create schema ${name}`)
  const url = new URL(postgresUrl ?? '')
  url.searchParams.set('options', `-c search_path=${name}`)
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      await onPostgres(`drop schema ${name} cascade`)
    },
  }
}

async function onPostgres(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
