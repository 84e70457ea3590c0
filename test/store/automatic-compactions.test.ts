/** Control starts due compactions by itself, and none twice. */
import { expect } from 'vitest'
import { prepareCompaction } from '#control/fleet/compaction-units.ts'
import { startDueCompactions } from '#control/upkeep/automatic-compactions.ts'
import type { Logger } from '#lib/telemetry.ts'
import { objectKey } from '#model/artifact.ts'
import { commitId } from '#model/commit.ts'
import type { AutomaticCompaction } from '#model/compaction.ts'
import { newId } from '#model/id.ts'
import { compactionLimits } from '#model/limits.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { recordCommit } from '#store/commits/commits.ts'
import { listRawParquet } from '#store/commits/raw-parquet.ts'
import { updateEndpoint } from '#store/endpoints/endpoints.ts'
import { startCompaction } from '#store/jobs/compaction-jobs.ts'
import { markCompactionFailed, publishCompaction, recordRemoval } from '#store/jobs/compactions.ts'
import { finishUnit, leaseUnit, listAvailableUnits, lockJob } from '#store/jobs/job-units.ts'
import { insertJob, listJobs, setJobStatus } from '#store/jobs/jobs.ts'
import { leaseLimits } from '#store/limits.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { aCommit, aJob, anAccount, aPublishedView, aStoredEndpoint, describeStores, iso } from './fixtures.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const midnight = Date.parse('2026-11-20T00:00:00.000Z')
const destination = { id: newId(), bucket: 'lake', region: 'eu-central-1' }
const never = new AbortController().signal
const daily: AutomaticCompaction = { period: 'day', except_views: [], remove_after_hours: null }

async function setUp(store: TestStore, endpoints = 1, compaction: AutomaticCompaction | null = daily) {
  const account = await anAccount(store)
  const clock = new ManualClock(midnight)
  const made = []
  for (let n = 0; n < endpoints; n += 1) made.push((await aStoredEndpoint(store, account, { compaction })).id)
  const [endpoint = ''] = made
  const warnings: unknown[] = []
  const logger = { info: () => undefined, warn: (fields: unknown) => warnings.push(fields) } as unknown as Logger
  const deliver = (seq: number, sealedAt: number, id = endpoint) => {
    const log = `${id.slice(0, 8)}lg`
    const commit = aCommit(id, seq, { log, sealed_at: iso(sealedAt), destination })
    const name = { endpointId: id, nodeId: commit.node_id, incarnation: log, seq, sealedAtMicros: sealedAt * 1000 }
    const artifacts = { parquet: { key: objectKey('p', name, { type: 'parquet' }), bytes: 10, rows: 5, sha256: 'ab' } }
    return transact(store, (db) => recordCommit(db, { ...commit, id: commitId(commit.node_id, log, seq), artifacts }, sealedAt))
  }
  const check = async (now: number) => {
    await startDueCompactions({ store, clock: new ManualClock(now), logger }, never)
    expect(warnings).toEqual([])
  }
  const jobs = async () => (await listJobs(store.db, account, { limit: 100, offset: 0 })).items.toReversed()
  const finishAll = async (now: number, status: 'done' | 'failed' = 'done') => {
    for (const { id } of (await jobs()).filter(({ finished_at }) => finished_at === null))
      await transact(store, async (db) => {
        await lockJob(db, id)
        for (const unit of await listAvailableUnits(db, id, now)) {
          if (status === 'done')
            await publishCompaction(db, unit.commit_id, { file: { key: 'k', bytes: 1, rows: 10, sha256: 'ab' }, now })
          const outcome = { processed: 10, accepted: 10, dropped: 0, dlq: 0, failed: 0 }
          await finishUnit(db, unit, status === 'done' ? { status, outcome } : { status, reason: 'no' }, now)
        }
      })
  }
  return { account, clock, endpoint, endpoints: made, deliver, check, jobs, finishAll }
}

describeStores('automatic compactions', (test) => {
  test('start once a period is closed, once, and only if there is something to merge', async ({ store }) => {
    const { deliver, check, jobs, finishAll } = await setUp(store)
    await check(midnight + 2 * hourMs)
    for (const seq of [0, 1]) await deliver(seq, midnight + 3 * hourMs + seq)
    await check(midnight + dayMs + compactionLimits.marginMs.day - 1)
    expect(await jobs()).toEqual([])
    const at = midnight + dayMs + compactionLimits.marginMs.day
    await check(at)
    await check(at + 60_000)
    const [job, ...others] = await jobs()
    expect(others).toEqual([])
    expect(job).toMatchObject({
      ...{ kind: 'compaction', status: 'running', created_by: 'automatic', to: iso(midnight + dayMs) },
      segments: { total: 1 },
    })
    await finishAll(at + 120_000)
    for (const later of [at + 180_000, at + 240_000]) await check(later)
    expect(await jobs()).toHaveLength(1)
    // Late segments are merged among themselves, on one of the next days.
    for (const seq of [2, 3]) await deliver(seq, midnight + 4 * hourMs + seq)
    await check(at + 300_000)
    expect(await jobs()).toHaveLength(1)
    await check(at + dayMs)
    expect((await jobs()).map(({ segments }) => segments.total)).toEqual([1, 1])
  })

  test('several processes that check at once start one job', async ({ store }) => {
    const { deliver, check, jobs } = await setUp(store)
    for (const seq of [0, 1]) await deliver(seq, midnight + seq)
    await Promise.all(Array.from({ length: 4 }, () => check(midnight + 2 * dayMs)))
    expect(await jobs()).toHaveLength(1)
    expect(await store.db.selectFrom('compactions').select('id').execute()).toHaveLength(1)
  })

  test('do not start for endpoints that did not ask for it; a request that finds nothing leaves no job', async ({ store }) => {
    const { account, endpoint, deliver, check, jobs } = await setUp(store, 1, null)
    for (const seq of [0, 1]) await deliver(seq, midnight + seq)
    await check(midnight + 3 * dayMs)
    expect(await jobs()).toEqual([])
    const caller = { account_id: account, created_by: 'ci' }
    const start = (to: number) => startCompaction(store, caller, endpoint, { period: 'day', to: iso(to) }, midnight + 3 * dayMs)
    expect(await start(midnight + 1)).toBeUndefined()
    expect(await jobs()).toEqual([])
    expect(await start(midnight + 2)).toMatchObject({ segments: { total: 1 } })
  })

  test('a job that was canceled, or failed, starts again with the next period at the earliest', async ({ store }) => {
    const { account, deliver, check, jobs, finishAll } = await setUp(store)
    for (const seq of [0, 1]) await deliver(seq, midnight + seq)
    const [first, second] = [midnight + 2 * dayMs, midnight + 3 * dayMs]
    await check(first)
    const [job] = await jobs()
    await transact(store, (db) => setJobStatus(db, account, job?.id ?? '', 'canceled', first))
    for (const wait of [60_000, 120_000]) await check(first + wait)
    expect(await jobs()).toHaveLength(1)
    await check(second)
    expect((await jobs()).map(({ status, segments }) => [status, segments.total])).toEqual([
      ['canceled', 1],
      ['running', 1],
    ])
    await finishAll(second, 'failed')
    await store.db.updateTable('compactions').set({ failed_at: second }).execute()
    for (const wait of [60_000, dayMs, 2 * dayMs]) await check(second + wait)
    expect(await jobs()).toHaveLength(2)
  })

  test('remove what was merged once it is old enough; what failed is tried again a day later', async ({ store }) => {
    const { account, endpoint, deliver, check, jobs, finishAll } = await setUp(store, 1, { ...daily, remove_after_hours: 48 })
    for (const seq of [0, 1]) await deliver(seq, midnight + seq)
    const merged = midnight + 2 * dayMs
    await check(merged)
    await finishAll(merged)
    const moved = async () => (await listRawParquet(store.db, endpoint, 10)).map(({ key, part }) => [key, part?.first_row])
    const before = await moved()
    await check(merged + 48 * hourMs - 1)
    expect(await jobs()).toHaveLength(1)
    expect(await moved()).toEqual(before)
    await check(merged + 48 * hourMs)
    expect(await moved()).toEqual([
      ['k', 5],
      ['k', 0],
    ])
    const [{ id = '' } = {}] = (await jobs()).filter(({ finished_at }) => finished_at === null)
    const next = async (now: number) => {
      const { commit_id } = (await transact(store, (db) => listAvailableUnits(db, id, now)))[0] ?? expect.fail('no unit')
      return { commit_id, prepared: await transact(store, (db) => prepareCompaction(db, account, commit_id, now)) }
    }
    // The account has no such destination, which is found after whether the unit is due.
    const now = merged + 48 * hourMs
    const { commit_id, prepared } = await next(now)
    expect(prepared).toMatchObject({ status: 'failed', reason: expect.stringContaining('destination') })
    // A node still reads one of the files for a backfill.
    const view = await aPublishedView(store, account)
    const backfill = await transact(store, (db) => insertJob(db, account, aJob(endpoint, view.id), now))
    const [unit] = await transact(store, (db) => listAvailableUnits(db, backfill.id, now))
    const lease = { lease_id: newId(), node_id: newId(), incarnation: 'a' }
    await transact(store, async (db) => unit && leaseUnit(db, unit, lease, now))
    expect((await next(now)).prepared).toBe('later')
    expect((await next(now + leaseLimits.leaseMs + 1)).prepared).not.toBe('later')
    await transact(store, (db) => setJobStatus(db, account, backfill.id, 'canceled', now))
    // The owner changed their mind.
    await inNewEpoch(store, (db) => updateEndpoint(db, account, endpoint, { compaction: null }, 0))
    expect((await next(now)).prepared).toMatchObject({ status: 'skipped', reason: 'the endpoint no longer removes these files' })
    await inNewEpoch(store, (db) =>
      updateEndpoint(db, account, endpoint, { compaction: { ...daily, remove_after_hours: 48 } }, 0),
    )

    await transact(store, (db) => markCompactionFailed(db, commit_id, now))
    await finishAll(now, 'failed')
    await check(now + dayMs - 1)
    expect((await jobs()).filter(({ kind }) => kind === 'compaction')).toHaveLength(2)
    await check(now + dayMs)
    expect((await jobs()).filter(({ kind }) => kind === 'compaction')).toHaveLength(3)
    await transact(store, (db) => recordRemoval(db, commit_id, now + dayMs))
    await finishAll(now + dayMs)
    await check(now + 3 * dayMs)
    expect((await jobs()).filter(({ kind }) => kind === 'compaction')).toHaveLength(3)
    expect(await moved()).toHaveLength(2)
  })

  test('an account has few at once, and each endpoint its turn', async ({ store }) => {
    const { endpoints, deliver, check, jobs, finishAll } = await setUp(store, compactionLimits.automaticPerAccountMax + 2)
    for (const id of endpoints) for (const seq of [0, 1]) await deliver(seq, midnight + seq, id)
    const now = midnight + 2 * dayMs
    await check(now)
    expect(await jobs()).toHaveLength(compactionLimits.automaticPerAccountMax)
    await finishAll(now)
    await check(now + 60_000)
    await finishAll(now + 60_000)
    const compacted = (await jobs()).map(({ endpoint_id }) => endpoint_id)
    expect(compacted.toSorted()).toEqual(endpoints.toSorted())
  })
})
