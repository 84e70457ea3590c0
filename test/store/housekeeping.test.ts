/** Housekeeping removes old rows of every table, and leaves others. */
import { expect } from 'vitest'
import { runHousekeeping } from '#control/upkeep/housekeeping.ts'
import { newId } from '#model/id.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { recordCommit } from '#store/commits/commits.ts'
import { insertDestination, updateDestination } from '#store/endpoints/destinations.ts'
import { updateEndpoint } from '#store/endpoints/endpoints.ts'
import { listFormerPlaces } from '#store/endpoints/former-places.ts'
import { insertCompaction, publishCompaction } from '#store/jobs/compactions.ts'
import { registerNode } from '#store/nodes/nodes.ts'
import { getViewMetrics } from '#store/series/view-counters.ts'
import { getViewQuality } from '#store/series/view-quality.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { ManualClock } from '../support/manual-clock.ts'
import {
  aCommit,
  aDestination,
  anAccount,
  anOutcome,
  aPublishedView,
  aStoredEndpoint,
  describeStores,
  iso,
  t0,
} from './fixtures.ts'

const dayMs = 86_400_000
const keptMs = 400 * dayMs
const never = new AbortController().signal

async function setUp(store: TestStore) {
  const account = await anAccount(store)
  const endpoint = (await aStoredEndpoint(store, account)).id
  const view = (await aPublishedView(store, account)).id
  const artifact = { bytes: 1, rows: 3, sha256: 'ab', view_id: view, view_version: 1 }
  const quality = { columns: [], sampled_records: 1, unmapped: [] }
  const deliver = (seq: number, at: number, node_id = aCommit('', 0).node_id) => {
    const artifacts = { 'dlq/events/v1': { key: `dlq ${seq}`, ...artifact } }
    const commit = aCommit(endpoint, seq, { node_id, artifacts, views: [anOutcome(view, { quality })], sealed_at: iso(at) })
    return transact(store, (db) => recordCommit(db, commit, at))
  }
  const run = (now: number, prune: () => Promise<void> = async () => undefined) =>
    runHousekeeping({ store, auditTrail: { prune }, commitsKeptMs: keptMs, clock: new ManualClock(now) }, never)
  const seqs = async (table: 'commits' | 'committed_seqs') =>
    (await store.db.selectFrom(table).select('seq').orderBy('seq').execute()).map(({ seq }) => seq)
  return { account, endpoint, view, deliver, run, seqs }
}

describeStores('housekeeping', (test) => {
  test('removes commits that are too old with their dead letter files, everywhere; the lifetime sums stay', async ({ store }) => {
    const { account, view, deliver, run, seqs } = await setUp(store)
    const other = await aStoredEndpoint(store, account)
    for (const seq of [1, 2, 3]) await deliver(seq, t0 + seq)
    for (const seq of [11, 12])
      await transact(store, (db) => recordCommit(db, aCommit(other.id, seq, { sealed_at: iso(t0) }), t0 + seq))
    await run(t0 + keptMs + 3)
    expect(await seqs('commits')).toEqual([3, 11, 12])
    expect(await store.db.selectFrom('dlq_files').select('segment_seq').execute()).toEqual([{ segment_seq: 3 }])
    expect((await getViewMetrics(store.db, account, view, t0)).aggregated.all_time.processed).toBe(30)
    await run(t0 + keptMs + 13)
    expect(await seqs('commits')).toEqual([])
  })

  test('removes where endpoints delivered before as late as the commits', async ({ store }) => {
    const { account, endpoint, run } = await setUp(store)
    const { id, bucket } = await insertDestination(store.db, account, aDestination(), t0)
    await inNewEpoch(store, (db) => updateEndpoint(db, account, endpoint, { destination_id: id }, t0))
    for (const [at, prefix] of ['a', 'b', 'c'].entries())
      await inNewEpoch(store, (db) => updateDestination(db, account, id, { prefix }, t0 + at))
    await inNewEpoch(store, (db) => updateDestination(db, account, id, { name: 'renamed' }, t0 + 3))
    const places = async () => (await listFormerPlaces(store.db, endpoint, 0)).map(({ prefix }) => prefix)
    expect(await listFormerPlaces(store.db, endpoint, t0 + 2)).toMatchObject([{ destination_id: id, bucket, prefix: 'b' }])
    await run(t0 + keptMs + 1)
    expect(await places()).toEqual(['b', 'a'])
  })

  test('removes compactions once the commits that they merged are gone', async ({ store }) => {
    const { account, endpoint, run } = await setUp(store)
    const place = { endpoint_id: endpoint, kind: 'parquet', view: null, date: '2026-11-20', prefix: '' }
    const source = { commit_id: 'c', marker_id: 'c', first_row: 0, rows: 1, bytes: 1, sha256: 'ab' }
    const file = { key: 'k', bytes: 1, rows: 1, sha256: 'ab' }
    for (const [id, kind] of [
      ['old', 'parquet'],
      ['late', 'views/a/v1'],
    ] as const) {
      const compaction = { ...place, id, kind, destination_id: 'd', bucket: 'b', region: 'local', sources: [source] }
      await transact(store, (db) => insertCompaction(db, account, compaction, t0))
    }
    await transact(store, (db) => publishCompaction(db, 'old', { file, now: t0 }))
    await transact(store, (db) => publishCompaction(db, 'late', { file, now: t0 + dayMs }))
    await run(t0 + keptMs + 1)
    const left = await store.db.selectFrom('compacted_artifacts').select('compaction_id').execute()
    expect(left).toEqual([{ compaction_id: 'late' }])
    await run(t0 + keptMs + dayMs + 1)
    expect(await store.db.selectFrom('compactions').select('id').execute()).toEqual([])
  })

  test('removes more rows than one statement may', async ({ store }) => {
    const { deliver, run, seqs } = await setUp(store)
    await deliver(0, t0)
    const first = await store.db.selectFrom('commits').selectAll().executeTakeFirstOrThrow()
    const rows = Array.from({ length: 2_500 }, (_, index) => ({
      ...first,
      id: newId(),
      seq: index + 1,
      uploaded_at: t0 + index + 1,
    }))
    for (let at = 0; at < rows.length; at += 500)
      await store.db
        .insertInto('commits')
        .values(rows.slice(at, at + 500))
        .execute()
    await run(t0 + keptMs + 2_500)
    expect(await seqs('commits')).toEqual([2_500])
  })

  test('removes every bucket of counters that is over, and no other; the lifetime sums stay', async ({ store }) => {
    const { account, endpoint, view, deliver, run } = await setUp(store)
    for (const hour of [0, 1, 2, 30]) await deliver(hour, t0 + hour * 3_600_000)
    await run(t0 + 30 * 3_600_000)
    const buckets = (table: 'view_counters' | 'view_quality') =>
      store.db.selectFrom(table).select('bucket_start').where('bucket_start', '>', 0).execute()
    for (const table of ['view_counters', 'view_quality'] as const)
      expect(await buckets(table)).toEqual([{ bucket_start: t0 + 30 * 3_600_000 }])
    const { aggregated } = await getViewMetrics(store.db, account, view, t0 + 30 * 3_600_000)
    expect(aggregated).toMatchObject({ last_24h: { processed: 10 }, all_time: { processed: 40 } })
    const { last_24h, all_time } = await getViewQuality(store.db, view, endpoint, t0 + 30 * 3_600_000)
    expect([last_24h.sampled_records, all_time.sampled_records]).toEqual([1, 4])
  })

  test('forgets the seqs of nodes that are gone, and keeps those of nodes that still report', async ({ store }) => {
    const { deliver, run, seqs } = await setUp(store)
    const [removed, silent, present] = [newId(), newId(), newId()]
    for (const node_id of [silent, present])
      await registerNode(store.db, { node_id, region: 'loc', ipv4: [], ipv6: [], ingest_address: 'node:1' }, t0)
    const flags = { healthy: 1, disk_full: 0, leaving: 0, copy_store: 0 }
    const seen = { node_id: present, process: 'ingest', applied_epoch: 1, reasons: '[]', ...flags }
    await store.db
      .insertInto('node_processes')
      .values({ ...seen, last_seen_at: t0 + 2 })
      .execute()
    for (const [index, node] of [removed, silent, present].entries()) await deliver(index, t0, node)
    await run(t0 + keptMs)
    expect(await seqs('committed_seqs')).toEqual([1, 2])
    await run(t0 + keptMs + 1)
    expect(await seqs('committed_seqs')).toEqual([2])
  })

  test('goes on with the other tables after one failed, and reports the failure', async ({ store }) => {
    const { deliver, run, seqs } = await setUp(store)
    await deliver(1, t0)
    await store.db.schema.dropTable('view_counters').execute()
    const prune = () => Promise.reject(new Error('the audit trail is locked'))
    await expect(run(t0 + keptMs + 1, prune)).rejects.toMatchObject({ errors: [expect.anything(), expect.anything()] })
    expect(await seqs('commits')).toEqual([])
  })
})
