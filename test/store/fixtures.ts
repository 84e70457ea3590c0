import { test } from 'vitest'
import { newApiKey, newExternalId } from '#auth/secrets.ts'
import type { ArtifactFiles, SegmentCommit, ViewOutcome } from '#model/commit.ts'
import { commitId } from '#model/commit.ts'
import type { CreateDestination } from '#model/destination.ts'
import { newId, newLabel } from '#model/id.ts'
import { insertAccount } from '#store/accounts/accounts.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { insertBinding } from '#store/endpoints/bindings.ts'
import { insertDestination } from '#store/endpoints/destinations.ts'
import { insertEndpoint, type NewEndpoint, type StoredEndpoint } from '#store/endpoints/endpoints.ts'
import { insertView, type NewView, publishView } from '#store/endpoints/views.ts'
import type { NewJob } from '#store/jobs/jobs.ts'
import { type Store, transact } from '#store/store.ts'
import { type DatabaseKind, describeDatabases, newStore, type TestStore } from '../support/databases.ts'

export const t0 = Date.parse('2026-11-20T08:00:00.000Z')
export const iso = (epochMs: number) => new Date(epochMs).toISOString()

/** The tests of a suite that runs on each database, each with a store of its own, and with an account in it if it asks for one. */
export function describeStores(name: string, suite: (test: StoreTest, kind: DatabaseKind) => void): void {
  describeDatabases(name, (kind) => suite(testWithStore(kind), kind))
}

type StoreTest = ReturnType<typeof testWithStore>

function testWithStore(kind: DatabaseKind) {
  return test.extend<{ readonly store: TestStore; readonly account: string }>({
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads what a fixture needs from its pattern
    store: async ({}, use) => {
      await using store = await newStore(kind)
      await use(store)
    },
    account: async ({ store }, use) => use(await anAccount(store)),
  })
}

export async function anAccount(store: Store, now = t0): Promise<string> {
  return (await insertAccount(store.db, { id: newId(), name: `test ${newLabel(12)}`, external_id: newExternalId() }, now)).id
}

export function aKey(account_id: string) {
  const { prefix, hash } = newApiKey()
  return {
    id: newId(),
    account_id,
    name: 'ci',
    prefix,
    hash,
    scopes: ['ingest', 'admin'] as const,
    endpoint_ids: null,
    origins: null,
  }
}

export function aDestination(change: Partial<CreateDestination> = {}): CreateDestination & { readonly id: string } {
  return {
    id: newId(),
    name: `lake-${newLabel(12)}`,
    bucket: 'lake',
    region: 'eu-central-1',
    role_arn: 'arn:aws:iam::123456789012:role/ingest',
    prefix: 'raw/events',
    kms_key_arn: null,
    checksums: 'standard',
    path_style: false,
    ...change,
  }
}

export function anEndpoint(change: Partial<NewEndpoint> = {}): NewEndpoint {
  return {
    id: newId(),
    region: 'loc',
    label: newLabel(12),
    since_epoch: 1,
    name: null,
    destination_id: null,
    segment_bytes: null,
    segment_max_age_seconds: null,
    output_formats: null,
    mqtt_config: null,
    compaction: null,
    kept_headers: null,
    kept_fields: null,
    copies: null,
    ...change,
  }
}

export function aView(change: Partial<NewView> = {}) {
  return {
    id: newId(),
    created_by: 'ci',
    name: `v_${newLabel(12)}`,
    definition: { columns: [{ name: 'type', type: 'VARCHAR', path: '$.type' }], filters: [{ condition: "type != 'x'" }] },
    description: '',
    format: 'json' as const,
    tags: [],
    ...change,
  }
}

export async function aStoredEndpoint(store: Store, account: string, change: Partial<NewEndpoint> = {}): Promise<StoredEndpoint> {
  return inNewEpoch(store, (db) => insertEndpoint(db, account, anEndpoint(change), t0))
}

export async function aStoredDestination(store: Store, account: string, now = t0) {
  return insertDestination(store.db, account, aDestination(), now)
}

export async function aPublishedView(store: Store, account: string, change: Partial<NewView> = {}) {
  return transact(store, async (db) => {
    const { id } = await insertView(db, account, aView(change), t0)
    return publishView(db, account, id, t0)
  })
}

export async function attach(store: Store, account: string, endpoint_id: string, view_id: string, now = t0) {
  const binding = { id: newId(), endpoint_id, view_id, is_required: false, canary_start_ts: null, activated_by: 'ci' }
  return inNewEpoch(store, (db) => insertBinding(db, account, binding, now))
}

export function aJob(endpoint_id: string, view_id: string, change: Partial<NewJob> = {}): NewJob {
  return {
    id: newId(),
    kind: 'backfill',
    ...{ view_id, endpoint_id, from_view_id: null, region: 'loc', from: null, to: null, created_by: 'ci' },
    ...change,
  }
}

export function anOutcome(view_id: string, change: Partial<ViewOutcome> = {}): ViewOutcome {
  return {
    view_id,
    view_name: 'events',
    view_version: 1,
    processed: 10,
    accepted: 6,
    dropped: 1,
    dlq: 3,
    failed: 0,
    cast_nulls: 2,
    errors: { cast_failed: 2, missing_required: 1 },
    last_error: { code: 'cast_failed', message: 'no TIMESTAMP: "soon"', at: iso(t0) },
    ...change,
  }
}

export function aCommit(endpoint_id: string, seq: number, change: Partial<SegmentCommit> = {}): SegmentCommit {
  const node_id = change.node_id ?? '8e0ff16e-6cbb-4b0b-8a6c-0c6b4f0f2a51'
  const artifacts: ArtifactFiles = {
    parquet: { key: `raw/events/${endpoint_id}/parquet/${seq}.parquet`, bytes: 4096, rows: 10, sha256: 'ab' },
  }
  return {
    id: commitId(node_id, `${endpoint_id.slice(0, 8)}logname`, seq),
    endpoint_id,
    node_id,
    log: 'abcdefghij',
    seq,
    records: 10,
    records_damaged: 2,
    wal_bytes: 2750,
    sealed_at: iso(t0),
    uploaded_at: iso(t0),
    duration_ms: 120,
    destination: { id: newId(), bucket: 'lake', region: 'eu-central-1' },
    artifacts,
    views: [],
    ...change,
  }
}
