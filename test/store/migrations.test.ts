import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { currentEpoch } from '#store/epoch.ts'
import { type Migration, migrate, NewerDatabaseError } from '#store/migrate.ts'
import { openStore } from '#store/store.ts'
import { describeDatabases, newDatabase, newStore } from '../support/databases.ts'
import { runStoreWorkers } from '../support/store-worker.ts'
import { anAccount } from './fixtures.ts'

describeDatabases('migrations', (kind) => {
  test('a new database gets all of them, and none the second time', async () => {
    await using database = await newDatabase(kind)
    const store = await openStore(database.url)
    expect(await migrate(store)).toBeGreaterThan(0)
    expect(await migrate(store)).toBe(0)
    expect(await currentEpoch(store.db)).toBe(0)
    await store.close()
  })

  test('a later release applies its own migration over an existing database, in order and once', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { version } = await store.db
      .selectFrom('schema_migrations')
      .select(({ fn }) => fn.max('version').as('version'))
      .executeTakeFirstOrThrow()
    const later: Migration[] = [
      {
        version: version + 1,
        name: 'a-column',
        up: async ({ schema }) => schema.alterTable('accounts').addColumn('plan', 'text').execute(),
      },
      {
        version: version + 2,
        name: 'its-values',
        up: async (db) => void (await sql`update accounts set plan = 'free'`.execute(db)),
      },
    ]
    expect(await migrate(store, later)).toBe(2)
    expect(await migrate(store, later)).toBe(0)
    const { rows } = await sql`select id, plan from accounts`.execute(store.db)
    expect(rows).toEqual([{ id: account, plan: 'free' }])
    // The previous release does not change it.
    await expect(migrate(store)).rejects.toThrow(NewerDatabaseError)
  })

  test('concurrent processes apply them once', async () => {
    await using database = await newDatabase(kind)
    const applied = await runStoreWorkers(4, database.url, 'migrate')
    expect(applied.toSorted()).toEqual([0, 0, 0, expect.any(Number)])
    expect(applied.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)
  })

  test('concurrent callers in one process apply them once', async () => {
    await using database = await newDatabase(kind)
    const store = await openStore(database.url)
    const applied = await Promise.all([migrate(store), migrate(store), migrate(store)])
    expect(applied.filter((count) => count > 0)).toHaveLength(1)
    await store.close()
  })

  test('a database of a newer release is not changed', async () => {
    await using store = await newStore(kind)
    await store.db.insertInto('schema_migrations').values({ version: 9_999, name: 'from-the-future', applied_at: 0 }).execute()
    await expect(migrate(store)).rejects.toThrow(NewerDatabaseError)
    await expect(migrate(store)).rejects.toThrow(/version 9999, and this release of Inlet supports versions up to \d+/)
  })

  test('a failed migration leaves nothing behind', async () => {
    await using database = await newDatabase(kind)
    const store = await openStore(database.url)
    // Conflicts with the last table of the first migration.
    await store.db.schema.createTable('view_totals').addColumn('x', 'integer').execute()
    await expect(migrate(store)).rejects.toThrow(/view_totals/)
    await expect(currentEpoch(store.db)).rejects.toThrow(/epoch/)
    await store.db.schema.dropTable('view_totals').execute()
    expect(await migrate(store)).toBeGreaterThan(0)
    await store.close()
  })
})
