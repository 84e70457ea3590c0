/** A database in memory with an account, its destination and its endpoints. Made once for each process, and copied for each history. */
import { Kysely, sql } from 'kysely'
import type { AutomaticCompaction } from '#model/compaction.ts'
import { insertAccount } from '#store/accounts/accounts.ts'
import { insertApiKey } from '#store/accounts/api-keys.ts'
import { type ChangeTx, inNewEpoch } from '#store/cluster/epoch.ts'
import { insertBinding } from '#store/endpoints/bindings.ts'
import { insertDestination } from '#store/endpoints/destinations.ts'
import { insertEndpoint } from '#store/endpoints/endpoints.ts'
import { insertVersion, insertView, publishView } from '#store/endpoints/views.ts'
import { openSqlite } from '#store/engines/sqlite.ts'
import { migrate } from '#store/migrations/migrate.ts'
import type { Database } from '#store/schema.ts'
import type { Store } from '#store/store.ts'
import { aKey } from '../support/ingest-node.ts'
import { startMs } from './kernel.ts'

export const accountId = 'aaaaaaaa-aaaa-4aaa-aaaa-aaaaaaaaaaaa'
export const endpointIds = ['11111111-1111-4111-a111-111111111111', '22222222-2222-4222-a222-222222222222'] as const
const viewsOfEndpoint = 3
const destinationId = '7f0e4d1c-5b2a-4f6e-9c3d-2a1b0c9d8e7f'

/** The statements that make a database with all that a history begins with. */
let statements: readonly string[] | undefined

/** Settings that differ from history to history. */
export type Settings = {
  readonly segmentBytes: number
  readonly segmentMaxAgeSeconds: number
  readonly recordsPerSecond: number
  /** Without, all views drop all records. */
  readonly hasViewFiles: boolean
  /** The window of one view of each endpoint. Null: none has one. */
  readonly window: string | null
  /** Records of these endpoints are in the copy store before they are acknowledged. */
  readonly copiedEndpoints: readonly string[]
  /** A node that is silent for so long is given to another one. Null: a person decides. */
  readonly takeOverAfterMs: number | null
}

/** Opens a copy of its own. */
export async function openDatabase(drawn: Settings): Promise<Store> {
  const { segmentBytes, segmentMaxAgeSeconds, recordsPerSecond, hasViewFiles, window, copiedEndpoints } = drawn
  statements ??= await dump(await furnish(openMemory()))
  const store = openMemory()
  for (const statement of statements) await sql.raw(statement).execute(store.db)
  const settings = { segment_bytes: segmentBytes, segment_max_age_seconds: segmentMaxAgeSeconds }
  await store.db.updateTable('endpoints').set(settings).execute()
  const quotas = JSON.stringify({ records_per_second: recordsPerSecond })
  await store.db.updateTable('accounts').set({ quotas }).execute()
  if (copiedEndpoints.length > 0)
    await store.db.updateTable('endpoints').set({ copies: 2 }).where('id', 'in', copiedEndpoints).execute()
  if (window !== null) {
    const definition = JSON.stringify({ ...plain, dedupe_by: ['id'], dedupe_within: window })
    await store.db
      .updateTable('views')
      .set(({ ref }) => ({ definition, name: sql<string>`${ref('name')} || '_window'` }))
      .where('name', 'like', `%_${viewsOfEndpoint - 1}`)
      .execute()
  }
  if (!hasViewFiles)
    await store.db
      .updateTable('views')
      .set(({ ref }) => ({ name: sql<string>`${ref('name')} || '_idle'` }))
      .execute()
  return store
}

/** One of each can be detached after the other. They have no rows: conversion writes none. */
export const bindings = endpointIds.flatMap((endpoint_id, at) =>
  Array.from({ length: viewsOfEndpoint }, (_, index) => ({
    id: idOf('b', at, index),
    view_id: idOf('c', at, index),
    endpoint_id,
  })),
)

/** Version 2 of the view that writes files, bound nowhere: backfills and re-drives apply it. */
export const laterVersions = bindings.flatMap(({ endpoint_id, view_id: earlier_id }, at) =>
  earlier_id.endsWith('0'.repeat(8)) ? [{ endpoint_id, earlier_id, id: idOf('d', at, 0) }] : [],
)

function idOf(kind: string, at: number, index: number): string {
  return `${kind.repeat(8)}-0000-4000-a000-${String(at).padStart(4, '0')}${String(index).padStart(8, '0')}`
}

const plain = { columns: [{ name: 'id', type: 'VARCHAR' as const, path: '$.id' }] }

async function attachView(db: ChangeTx, { id, view_id, endpoint_id }: (typeof bindings)[number]): Promise<void> {
  const name = `view_${endpoint_id.slice(0, 1)}_${Number(view_id.slice(-8))}`
  const view = {
    id: view_id,
    created_by: 'somebody',
    name,
    definition: plain,
    description: '',
    format: 'json' as const,
    tags: [],
  }
  await insertView(db, accountId, view, startMs)
  await publishView(db, accountId, view_id, startMs)
  const binding = { id, endpoint_id, view_id, is_required: false, canary_start_ts: null, activated_by: 'somebody' }
  await insertBinding(db, accountId, binding, startMs)
}

function openMemory(): Store {
  const db = new Kysely<Database>({ dialect: openSqlite(':memory:').dialect })
  return { db, dialect: 'sqlite', newLeaderLock: undefined, close: () => db.destroy() }
}

async function furnish(store: Store): Promise<Store> {
  await migrate(store, undefined, startMs)
  await insertAccount(store.db, { id: accountId, name: 'simulated', external_id: 'x' }, startMs)
  const place = { bucket: 'lake', prefix: 'in', region: 'loc', role_arn: null, kms_key_arn: null } as const
  const destination = { id: destinationId, name: 'lake', ...place, checksums: 'standard', path_style: true } as const
  await insertDestination(store.db, accountId, destination, startMs)
  const settings = { name: null, segment_bytes: null, segment_max_age_seconds: null, mqtt_config: null }
  const output_formats = ['parquet', 'parquet_views'] as const
  const compaction: AutomaticCompaction = { period: 'day', except_views: [], remove_after_hours: 1 }
  const kept = { compaction, kept_headers: null, kept_fields: null, copies: null }
  for (const [index, id] of endpointIds.entries()) {
    const endpoint = { id, region: 'loc', label: `endpoint${index}`, since_epoch: 1, destination_id: destinationId }
    await inNewEpoch(store, (db) => insertEndpoint(db, accountId, { ...endpoint, ...settings, output_formats, ...kept }, startMs))
  }
  for (const binding of bindings) await inNewEpoch(store, (db) => attachView(db, binding))
  for (const { earlier_id, id } of laterVersions)
    await inNewEpoch(store, async (db) => {
      await insertVersion(db, accountId, earlier_id, { id, created_by: 'somebody' }, undefined, startMs)
      await publishView(db, accountId, id, startMs)
    })
  const { id, hash, name = '', scopes } = aKey()
  const key = { id, hash, name, scopes, prefix: 'ing_live_aaaa', account_id: accountId, endpoint_ids: null, origins: null }
  await inNewEpoch(store, (db) => insertApiKey(db, key, startMs))
  return store
}

async function dump({ db, close }: Store): Promise<readonly string[]> {
  const read = async <Row>(text: string) => (await sql.raw<Row>(text).execute(db)).rows
  const schema = await read<{ type: string; name: string; sql: string }>(
    `SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`,
  )
  const tables = schema.filter(({ type }) => type === 'table')
  const rows: string[] = []
  for (const { name } of tables) {
    const columns = await read<{ name: string }>(`SELECT name FROM pragma_table_info('${name}')`)
    const values = columns.map((column) => `quote("${column.name}")`).join(` || ', ' || `)
    for (const { row } of await read<{ row: string }>(`SELECT ${values} AS row FROM "${name}"`))
      rows.push(`INSERT INTO "${name}" VALUES (${row})`)
  }
  await close()
  const others = schema.filter(({ type }) => type !== 'table')
  // Rows may refer to tables that come later.
  const made = [...tables, ...others].map((each) => each.sql)
  return ['PRAGMA foreign_keys = off', 'BEGIN', ...made, ...rows, 'COMMIT', 'PRAGMA foreign_keys = on']
}
