import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import type { SeriesStep } from '#model/limits.ts'
import { seriesWindow } from '#model/series.ts'
import { findApiKeyByHash, insertApiKey, revokeApiKey } from '#store/accounts/api-keys.ts'
import { currentEpoch, inNewEpoch } from '#store/cluster/epoch.ts'
import { getView, insertView } from '#store/endpoints/views.ts'
import { up as seriesRowsOfAMinute } from '#store/migrations/0029-series-rows-of-a-minute.ts'
import { up as accessOfRevokedKeys } from '#store/migrations/0036-access-of-revoked-keys.ts'
import { up as jobsInViewMetrics } from '#store/migrations/0037-jobs-in-view-metrics.ts'
import { up as listFormOfDrafts } from '#store/migrations/0039-list-form-of-drafts.ts'
import { up as formerCredentials } from '#store/migrations/0057-former-credentials.ts'
import { up as holdersOfTakeOvers } from '#store/migrations/0067-holders-of-take-overs.ts'
import { type Migration, migrate, NewerDatabaseError, readSchemaVersion } from '#store/migrations/migrate.ts'
import { listEndpointBuckets } from '#store/series/endpoint-series.ts'
import { openStore, transact } from '#store/store.ts'
import { newDatabase } from '../support/databases.ts'
import { runStoreWorkers } from '../support/store-worker.ts'
import { aKey, anAccount, aPublishedView, aStoredEndpoint, aView, describeStores, iso, t0 } from './fixtures.ts'

describeStores('migrations', (test, kind) => {
  test('a new database gets all of them, and none the second time', async () => {
    await using database = await newDatabase(kind)
    const store = await openStore(database.url)
    expect(await readSchemaVersion(store)).toMatchObject({ present: 0 })
    expect(await migrate(store)).toBeGreaterThan(0)
    expect(await migrate(store)).toBe(0)
    const { present, newest } = await readSchemaVersion(store)
    expect(present).toBe(newest)
    expect(await currentEpoch(store.db)).toBe(0)
    await store.close()
  })

  test.runIf(kind === 'postgres')('what other programs have in the same database is not looked at', async () => {
    await using database = await newDatabase(kind)
    const store = await openStore(database.url)
    const other = `other_${randomUUID().replaceAll('-', '')}`
    await sql`create schema ${sql.id(other)}`.execute(store.db)
    await store.db.schema.withSchema(other).createTable('schema_migrations').addColumn('release', 'text').execute()
    try {
      expect(await readSchemaVersion(store)).toMatchObject({ present: 0 })
    } finally {
      await sql`drop schema ${sql.id(other)} cascade`.execute(store.db)
      await store.close()
    }
  })

  test('a later release applies its own migration over an existing database, in order and once', async ({ store, account }) => {
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

  test('a key that was revoked before there was a choice has ended with all that it opened', async ({ store, account }) => {
    const [revoked, active] = [aKey(account), aKey(account)]
    for (const key of [revoked, active]) await inNewEpoch(store, (db) => insertApiKey(db, key, t0))
    await inNewEpoch(store, (db) => revokeApiKey(db, account, revoked.id, { at: t0 + 5, endsAccess: false }))
    await store.db.schema.alterTable('api_keys').dropColumn('access_ended_at').execute()
    await transact(store, accessOfRevokedKeys)
    const endOf = async ({ hash }: { hash: string }) => (await findApiKeyByHash(store.db, hash))?.access_ended_at
    expect([await endOf(revoked), await endOf(active)]).toEqual([iso(t0 + 5), null])
  })

  test('buckets of series are kept when rows of several are introduced, but for those of ten seconds', async ({ store }) => {
    const { id } = await aStoredEndpoint(store, await anAccount(store))
    await store.db.schema.alterTable('endpoint_series').dropColumn('writes').execute()
    for (const step of ['10s', '1m', '1h'])
      await sql`insert into endpoint_series (endpoint_id, step, bucket_start, counts)
        values (${id}, ${step}, cast(${t0} as bigint), '{"records":5}')`.execute(store.db)
    await transact(store, seriesRowsOfAMinute)
    const recordsOf = async (step: SeriesStep) => {
      const buckets = await listEndpointBuckets(store.db, id, seriesWindow({ step, since: iso(t0) }, t0))
      return buckets.map(({ records }) => records)
    }
    expect(await Promise.all((['10s', '1m', '1h'] as const).map(recordsOf))).toEqual([[], [5], [5]])
  })

  test('dead letters that jobs rejected before jobs were counted are told from those that count', async ({ store }) => {
    const { db } = store
    for (const table of ['view_counters', 'view_totals']) await db.schema.alterTable(table).dropColumn('redriven').execute()
    await db.schema.alterTable('commits').dropColumn('failed_views').execute()
    await db.schema.alterTable('commit_additions').dropColumn('from_view_id').execute()
    for (const column of ['counted_at', 'redriven_at']) await db.schema.alterTable('dlq_files').dropColumn(column).execute()
    const account = await anAccount(store)
    const endpoint = await aStoredEndpoint(store, account)
    const [view, later] = [(await aPublishedView(store, account)).id, (await aPublishedView(store, account)).id]
    const [job, commit] = [newId(), newId()]
    await transact(store, async (tx) => {
      await sql`insert into commits (id, endpoint_id, node_id, log, seq, records, records_damaged, wal_bytes, duration_ms, sealed_at, uploaded_at, destination_id, bucket, region, artifacts)
        values (${commit}, ${endpoint.id}, 'n', 'l', 0, 1, 0, 1, 1, 1, 1, 'd', 'b', 'r', '{}')`.execute(tx)
      for (const id of [view, later])
        await sql`insert into dlq_files (commit_id, view_id, endpoint_id, segment_seq, destination_id, s3_bucket, s3_key, region, bytes, rows, created_at)
          values (${commit}, ${id}, ${endpoint.id}, 0, 'd', 'b', 'k', 'r', 1, 1, 5)`.execute(tx)
      await sql`insert into commit_additions (commit_id, view_id, job_id, artifacts, added_at) values (${commit}, ${later}, ${job}, '{}', 9)`.execute(
        tx,
      )
      await sql`insert into jobs (id, account_id, kind, status, view_id, from_view_id, endpoint_id, region, created_by, created_at, looked_at, total, done, skipped, failed, processed, accepted, dropped, dlq, failed_records)
        values (${job}, ${account}, 'redrive', 'succeeded', ${later}, ${view}, ${endpoint.id}, 'loc', 'ci', 1, 1, 1, 1, 0, 0, 1, 0, 0, 1, 0)`.execute(
        tx,
      )
    })
    await transact(store, jobsInViewMetrics)
    const files = await db.selectFrom('dlq_files').select(['view_id', 'counted_at', 'redriven_at']).execute()
    expect(new Map(files.map(({ view_id, ...file }) => [view_id, file]))).toEqual(
      new Map([
        [view, { counted_at: 5, redriven_at: 9 }],
        [later, { counted_at: null, redriven_at: null }],
      ]),
    )
  })

  test('credentials of removed nodes are kept with those of adopted logs', async ({ store }) => {
    const { db } = store
    await db.schema.alterTable('former_credentials').renameTo('adopted_credentials').execute()
    await db.schema.alterTable('adopted_credentials').renameColumn('ended_at', 'adopted_at').execute()
    await db.schema.alterTable('adopted_credentials').dropColumn('revoked_at').execute()
    await sql`create table removed_nodes (id text primary key, credential_hash text, removed_at bigint, credential_revoked_at bigint)`.execute(
      db,
    )
    const [adopted, removed] = [newId(), newId()]
    await sql`insert into adopted_credentials (node_id, credential_hash, adopted_at, fence) values
      (${adopted}, 'a', 1, 'node_adopted'), (${removed}, 'b', 2, 'node_adopted')`.execute(db)
    await sql`insert into removed_nodes values (${removed}, 'b', 3, null), (${removed.toUpperCase()}, 'c', 4, 5)`.execute(db)
    await transact(store, formerCredentials)
    const rows = await db
      .selectFrom('former_credentials')
      .select(['credential_hash', 'fence', 'ended_at', 'revoked_at'])
      .where('node_id', 'in', [adopted, removed, removed.toUpperCase()])
      .orderBy('credential_hash')
      .execute()
    expect(rows).toEqual([
      { credential_hash: 'a', fence: 'node_adopted', ended_at: 1, revoked_at: null },
      { credential_hash: 'b', fence: 'node_removed', ended_at: 2, revoked_at: null },
      { credential_hash: 'c', fence: 'node_removed', ended_at: 4, revoked_at: 5 },
    ])
  })

  test('the audit trail says which node has the place of a lost one, also if another one should go on', async ({ store }) => {
    const { db } = store
    await db.schema.dropIndex('take_overs_by_holder').execute()
    for (const column of ['holder_node_id', 'ended_at']) await db.schema.alterTable('take_overs').dropColumn(column).execute()
    await db.schema.alterTable('take_overs').addColumn('begun_at', 'bigint').execute()
    const [given, begun, ended, assigned, suspected] = [newId(), newId(), newId(), newId(), newId()]
    const sentinel = Number.MAX_SAFE_INTEGER
    await transact(store, async (tx) => {
      for (const [id, by, seenAt, begunAt] of [
        [given, 'b', 7, 3],
        [begun, 'a', 4, 4],
        [ended, 'a', sentinel, sentinel],
        // It was adopted long before, so the migration before took it for begun.
        [assigned, 'b', 9, 9],
        [suspected, '', 5, null],
      ] as const)
        await sql`insert into take_overs (node_id, by_node_id, seen_at, begun_at)
          values (${id}, ${by}, cast(${seenAt} as bigint), cast(${begunAt} as bigint))`.execute(tx)
      await sql`insert into former_credentials (node_id, credential_hash, ended_at, fence) values (${ended}, 'a', 6, 'node_adopted')`.execute(
        tx,
      )
      for (const [id, by, at] of [
        [given, 'z', 2],
        [given, 'a', 3],
        [begun, 'a', 4],
        [ended, 'a', 6],
      ] as const)
        await sql`insert into audit_events (id, at, request_id, actor, account_id, operation, resource_id, result, unrecorded)
          values (${newId()}, ${at}, 'r', ${`node:${by}`}, null, 'takeOverNode', ${id}, 'succeeded', 0)`.execute(tx)
    })
    await transact(store, holdersOfTakeOvers)
    const rows = await db.selectFrom('take_overs').selectAll().execute()
    const rowOf = (id: string) => rows.find(({ node_id }) => node_id === id)
    expect(rowOf(given)).toMatchObject({ by_node_id: 'b', seen_at: 7, holder_node_id: 'a', ended_at: null })
    expect(rowOf(begun)).toMatchObject({ by_node_id: 'a', seen_at: 4, holder_node_id: 'a', ended_at: null })
    expect(rowOf(ended)).toMatchObject({ seen_at: 6, holder_node_id: 'a', ended_at: 6 })
    for (const id of [assigned, suspected]) expect(rowOf(id)).toMatchObject({ holder_node_id: null, ended_at: null })
  })

  test('drafts get aligned lists, and published versions keep theirs', async ({ store, account }) => {
    const definition = { columns: [{ name: 'skus', type: 'VARCHAR[]', path: '$.items[*].sku' }] }
    const published = await aPublishedView(store, account, { definition })
    const drafts = [definition, { ...definition, lists: 'packed' as const }, aView().definition].map((each) =>
      aView({ definition: each }),
    )
    for (const draft of drafts) await transact(store, (db) => insertView(db, account, draft, t0))
    await transact(store, listFormOfDrafts)
    const definitions = [published, ...drafts].map(async ({ id }) => (await getView(store.db, account, id)).definition)
    expect(await Promise.all(definitions)).toEqual([
      definition,
      { ...definition, lists: 'aligned' },
      { ...definition, lists: 'packed' },
      aView().definition,
    ])
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

  test('a database of a newer release is not changed', async ({ store }) => {
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
