import { expect } from 'vitest'
import type { ArtifactFiles, ViewOutcome } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import type { Job } from '#model/job.ts'
import { findCommit, insertAddition } from '#store/commits/commit-additions.ts'
import { listCommits, recordCommit } from '#store/commits/commits.ts'
import { findLatestRejectingVersion, listDlqFiles } from '#store/commits/dlq-files.ts'
import { insertVersion, publishView } from '#store/endpoints/views.ts'
import {
  findUnit,
  finishUnit,
  leaseUnit,
  listAvailableUnits,
  listLeasedUnits,
  lockJob,
  returnUnit,
} from '#store/jobs/job-units.ts'
import { getJob, insertJob, lockRunningJob, removeJobFinishedBefore, setJobStatus } from '#store/jobs/jobs.ts'
import { leaseLimits } from '#store/limits.ts'
import { getViewMetrics, removeViewCountersBefore } from '#store/series/view-counters.ts'
import { type Store, transact } from '#store/store.ts'
import { aCommit, aJob, anAccount, anOutcome, aPublishedView, aStoredEndpoint, describeStores, iso, t0 } from './fixtures.ts'

async function furnished(store: Store, segments = 4) {
  const account = await anAccount(store)
  const endpoint = await aStoredEndpoint(store, account)
  const view = await aPublishedView(store, account)
  const commits = Array.from({ length: segments }, (_, seq) => aCommit(endpoint.id, seq, { sealed_at: iso(t0 + seq * 1000) }))
  for (const commit of commits) await transact(store, (db) => recordCommit(db, commit, t0))
  const start = (change = {}) => transact(store, (db) => insertJob(db, account, aJob(endpoint.id, view.id, change), t0))
  return { account, endpoint, view, commits, start }
}

const lease = () => ({ lease_id: newId(), node_id: newId(), incarnation: 'first' })
const outcome = { processed: 10, accepted: 7, dropped: 2, dlq: 1, failed: 0 }
const files = (view_id: string): ArtifactFiles => ({
  'views/events/v2': { key: 'v', bytes: 1, rows: 7, sha256: 'ab', view_id, view_version: 2 },
  'dlq/events/v2': { key: 'd', bytes: 1, rows: 1, sha256: 'ab', view_id, view_version: 2 },
})

async function finishUnits(store: Store, job_id: string): Promise<void> {
  await transact(store, async (db) => {
    await lockJob(db, job_id)
    for (const unit of await listAvailableUnits(db, job_id, t0)) await finishUnit(db, unit, { status: 'done', outcome }, t0)
  })
}

describeStores('jobs', (test) => {
  test('a segment sealed before the job and committed after it is added, and a finished job runs again', async ({ store }) => {
    const { account, endpoint, view, start } = await furnished(store, 0)
    const job = await start({ from: iso(t0 - 5_000) })
    expect(job).toMatchObject({ status: 'succeeded', segments: { total: 0 } })
    const late = (seq: number, sealedAt: number, views: readonly ViewOutcome[] = []) =>
      transact(store, (db) => recordCommit(db, aCommit(endpoint.id, seq, { sealed_at: iso(sealedAt), views: [...views] }), t0))
    await late(0, t0)
    await late(1, t0 - 5_001)
    await late(2, t0 - 1, [anOutcome(view.id)])
    expect(await getJob(store.db, account, job.id)).toEqual(job)
    await late(3, t0 - 1, [anOutcome(view.id, { errors: { view_failed: 1 } })])
    await late(4, t0 - 5_000)
    await late(4, t0 - 5_000)
    const running = { status: 'running', finished_at: null, segments: { total: 2 } }
    expect(await getJob(store.db, account, job.id)).toMatchObject(running)
    expect(await transact(store, (db) => listAvailableUnits(db, job.id, t0))).toHaveLength(2)
    await transact(store, (db) => setJobStatus(db, account, job.id, 'canceled', t0))
    await late(5, t0 - 1)
    expect(await getJob(store.db, account, job.id)).toMatchObject({ status: 'canceled', segments: { total: 2 } })
  })

  test('of several jobs of a view, a late segment goes to the unfinished one, or else to the latest', async ({ store }) => {
    const { account, endpoint, start } = await furnished(store, 0)
    const late = (seq: number) =>
      transact(store, (db) => recordCommit(db, aCommit(endpoint.id, seq, { sealed_at: iso(t0 - 1) }), t0))
    const totals = (...jobs: readonly Job[]) =>
      Promise.all(jobs.map(async ({ id }) => (await getJob(store.db, account, id)).segments.total))
    const first = await start()
    await late(0)
    await expect(start()).rejects.toMatchObject({ code: 'conflict' })
    const [unit] = await transact(store, (db) => listAvailableUnits(db, first.id, t0))
    await transact(store, async (db) => {
      await lockJob(db, first.id)
      if (unit !== undefined) await finishUnit(db, unit, { status: 'done', outcome }, t0)
    })
    const second = await start()
    await late(1)
    expect(await totals(first, second)).toEqual([1, 2])
  })

  test('a finished job that gets a late segment while another one of the view runs goes on once that has ended', async ({
    store,
  }) => {
    const { account, endpoint, view, start } = await furnished(store, 0)
    const backfill = await start()
    const rejecting = await aPublishedView(store, account)
    const rejected = aCommit(endpoint.id, 0, { artifacts: files(rejecting.id), views: [anOutcome(rejecting.id)] })
    await transact(store, (db) => recordCommit(db, rejected, t0))
    for (const end of ['done', 'canceled'] as const) {
      const redrive = await start({ kind: 'redrive', from_view_id: rejecting.id })
      const late = aCommit(endpoint.id, end === 'done' ? 1 : 2, { sealed_at: iso(t0 - 1) })
      await transact(store, (db) => recordCommit(db, late, t0))
      expect(await getJob(store.db, account, backfill.id)).toMatchObject({ status: 'succeeded' })
      if (end === 'canceled') await transact(store, (db) => setJobStatus(db, account, redrive.id, 'canceled', t0))
      else await finishUnits(store, redrive.id)
      expect(await getJob(store.db, account, backfill.id)).toMatchObject({ status: 'running', finished_at: null })
      const units = await transact(store, (db) => listAvailableUnits(db, backfill.id, t0))
      expect(units).toMatchObject([{ commit_id: late.id, view_id: view.id }])
      await finishUnits(store, backfill.id)
      expect(await getJob(store.db, account, backfill.id)).toMatchObject({ status: 'succeeded' })
    }
  })

  test('a segment that a view was applied to without a file has an output; one that it failed on has none', async ({ store }) => {
    const { endpoint, view } = await furnished(store, 0)
    const failing = newId()
    const views = [anOutcome(view.id), anOutcome(failing, { errors: { view_failed: 1 } })]
    const commit = aCommit(endpoint.id, 0, { views })
    await transact(store, (db) => recordCommit(db, commit, t0))
    expect(await findCommit(store.db, commit.id)).toMatchObject({ applied: [view.id] })
  })

  test('concurrent callers start one job', async ({ store }) => {
    const { start } = await furnished(store)
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => start()))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'conflict' })
  })

  test('concurrent callers take each unit once', async ({ store }) => {
    const { start } = await furnished(store, 12)
    const { id } = await start()
    const take = () =>
      transact(store, async (db) => {
        await lockRunningJob(db, id, t0)
        const [unit] = await listAvailableUnits(db, id, t0)
        if (unit !== undefined) await leaseUnit(db, unit, lease(), t0)
        return unit?.commit_id
      })
    const taken = await Promise.all(Array.from({ length: 12 }, take))
    expect(new Set(taken).size).toBe(12)
    expect(await take()).toBeUndefined()
  })

  test('a lost lease changes nothing', async ({ store }) => {
    const { start } = await furnished(store, 1)
    const job = await start()
    const [first, second] = [lease(), lease()]
    await transact(store, async (db) => {
      const [unit] = await listAvailableUnits(db, job.id, t0)
      if (unit === undefined) throw new Error('no unit')
      await leaseUnit(db, unit, first, t0)
      expect(await listAvailableUnits(db, job.id, t0 + leaseLimits.leaseMs - 1)).toEqual([])
      const [again] = await listAvailableUnits(db, job.id, t0 + leaseLimits.leaseMs)
      if (again === undefined) throw new Error('no unit')
      await leaseUnit(db, again, second, t0 + leaseLimits.leaseMs)
      await returnUnit(db, { ...unit, ...first }, t0)
      expect(await findUnit(db, job.id, unit.commit_id)).toMatchObject({ status: 'leased', lease_id: second.lease_id })
    })
    expect(await listLeasedUnits(store.db, [second.node_id])).toMatchObject([{ job_id: job.id, canceled: false }])
    expect(await listLeasedUnits(store.db, [first.node_id])).toEqual([])
  })

  test('one of two concurrent changes wins: a canceled job is not resumed', async ({ store }) => {
    const { account, start } = await furnished(store)
    const { id } = await start()
    await transact(store, (db) => setJobStatus(db, account, id, 'canceled', t0))
    await expect(transact(store, (db) => setJobStatus(db, account, id, 'running', t0))).rejects.toMatchObject({
      code: 'validation_error',
    })
    await expect(transact(store, (db) => setJobStatus(db, newId(), id, 'paused', t0))).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  test('an addition is recorded once, with its DLQ files, and listed with the commit', async ({ store }) => {
    const { account, endpoint, view, commits } = await furnished(store, 2)
    const id = commits[0]?.id ?? ''
    const add = (job_id: string) =>
      transact(store, async (db) => {
        const commit = await findCommit(db, id)
        const addition = { view_id: view.id, from_view_id: null, job_id, artifacts: files(view.id), outcome: anOutcome(view.id) }
        return commit && insertAddition(db, { commit, ...addition }, t0)
      })
    const added = await Promise.all([add('a'), add('b'), add('c')])
    expect(added.filter((isNew) => isNew === true)).toHaveLength(1)
    const { items } = await listCommits(store.db, endpoint.id, { limit: 10 })
    expect(Object.keys(items.find((commit) => commit.id === id)?.artifacts ?? {})).toEqual([
      ...['parquet', 'views/events/v2', 'dlq/events/v2'],
    ])
    expect(Object.keys(items.find((commit) => commit.id !== id)?.artifacts ?? {})).toEqual(['parquet'])
    expect(await findCommit(store.db, id)).toMatchObject({ added: [view.id], artifacts: { 'dlq/events/v2': { key: 'd' } } })
    expect((await listDlqFiles(store.db, view.id, { limit: 10 })).files).toMatchObject([{ s3_key: 'd', rows: 1 }])
    const { aggregated } = await getViewMetrics(store.db, account, view.id, t0)
    expect(aggregated).toMatchObject({ last_24h: { processed: 10, dlq: 3 }, all_time: { processed: 10 }, has_errors: true })
  })

  test('a re-drive takes over dead letters where they were counted, so that it hides no later ones', async ({ store }) => {
    const { account, endpoint, view } = await furnished(store, 0)
    const [repaired, again] = [await aPublishedView(store, account), await aPublishedView(store, account)]
    const dayMs = 86_400_000
    const now = t0 + 2 * dayMs
    const dead = (seq: number, at: number) => {
      const views = [anOutcome(view.id)]
      const dlq = { key: `d${seq}`, bytes: 1, rows: 3, sha256: 'ab', view_id: view.id, view_version: 1 }
      const commit = aCommit(endpoint.id, seq, { views, artifacts: { 'dlq/x/v1': dlq } })
      return transact(store, async (db) => [await recordCommit(db, commit, at), commit.id][1] ?? '')
    }
    const [old, kept, recent] = [await dead(0, t0), await dead(1, now - dayMs / 2), await dead(2, now)]
    await removeViewCountersBefore(store.db, now - dayMs)
    const redrive = (id: string, to: string) =>
      transact(store, async (db) => {
        const commit = await findCommit(db, id)
        if (commit === undefined) throw new Error('the commit is missing')
        const addition = { view_id: to, from_view_id: view.id, job_id: newId(), artifacts: {}, outcome: anOutcome(to, clean) }
        return insertAddition(db, { commit, ...addition }, now)
      })
    const clean = { processed: 3, accepted: 3, dropped: 0, dlq: 0, errors: {}, last_error: null }
    const metrics = async () => (await getViewMetrics(store.db, account, view.id, now)).endpoints[0]
    expect(await metrics()).toMatchObject({ error_count_24h: 6, total_error_count: 9 })
    expect(await redrive(old, repaired.id)).toBe(true)
    expect(await metrics()).toMatchObject({
      ...{ error_count_24h: 6, total_error_count: 6, error_rate_pct: 30 },
      ...{ last_24h: { dlq: 6, redriven: 0 }, all_time: { dlq: 9, redriven: 3 } },
    })
    await redrive(kept, repaired.id)
    expect(await metrics()).toMatchObject({ error_count_24h: 3, error_rate_pct: 15, has_errors: true })
    // Neither the same re-drive nor one to another version takes anything over twice.
    expect(await redrive(kept, repaired.id)).toBe(false)
    expect(await redrive(kept, again.id)).toBe(true)
    await redrive(recent, repaired.id)
    expect(await metrics()).toMatchObject({
      ...{ error_count_24h: 0, total_error_count: 0, error_rate_pct: 0, has_errors: false },
      ...{ last_24h: { processed: 20, dlq: 6, redriven: 6 }, all_time: { processed: 30, dlq: 9, redriven: 9 } },
    })
    const { files: listed } = await listDlqFiles(store.db, view.id, { limit: 10 })
    expect(listed.map(({ redriven_at }) => redriven_at)).toEqual([iso(now), iso(now), iso(now)])
    expect((await getViewMetrics(store.db, account, repaired.id, now)).aggregated).toMatchObject({
      ...{ last_24h: { processed: 9, accepted: 9 }, has_errors: false },
    })
  })

  test('a backfill of a segment on which the view failed stands for its records', async ({ store }) => {
    const { account, endpoint, view } = await furnished(store, 0)
    const failed = { accepted: 0, dropped: 0, dlq: 0, failed: 10, errors: { view_failed: 10 } }
    const commits = [0, 1].map((seq) => aCommit(endpoint.id, seq, { views: [anOutcome(view.id, failed)] }))
    for (const commit of commits) await transact(store, (db) => recordCommit(db, commit, t0))
    await transact(store, async (db) => {
      const commit = await findCommit(db, commits[0]?.id ?? '')
      const outcome = anOutcome(view.id, { accepted: 10, dropped: 0, dlq: 0, errors: {}, last_error: null })
      const addition = { view_id: view.id, from_view_id: null, job_id: newId(), artifacts: {}, outcome }
      if (commit !== undefined) await insertAddition(db, { commit, ...addition }, t0 + 3_600_000)
    })
    const counts = { processed: 20, accepted: 10, dropped: 0, dlq: 0, failed: 10, redriven: 0 }
    expect((await getViewMetrics(store.db, account, view.id, t0 + 3_600_000)).endpoints[0]).toMatchObject({
      ...{ last_24h: counts, all_time: counts, error_rate_pct: 50, error_count_24h: 10, total_error_count: 10 },
    })
  })

  test('finds the latest other version that rejected rows in the range', async ({ store }) => {
    const { account, endpoint, view } = await furnished(store, 0)
    const next = async () =>
      transact(store, async (db) => {
        const { id } = await insertVersion(db, account, view.id, { id: newId(), created_by: 'ci' }, undefined, t0)
        return publishView(db, account, id, t0)
      })
    const [second, third] = [await next(), await next()]
    for (const [seq, { id, version }] of [view, second].entries()) {
      const dlq = { key: `d${seq}`, bytes: 1, rows: 1, sha256: 'ab', view_id: id, view_version: version }
      const commit = aCommit(endpoint.id, seq, { sealed_at: iso(t0 + seq * 1000), artifacts: { [`dlq/x/v${version}`]: dlq } })
      await transact(store, (db) => recordCommit(db, commit, t0))
    }
    const find = (except: string, to: number | null, endpoint_id = endpoint.id) =>
      findLatestRejectingVersion(
        store.db,
        account,
        { name: view.name, except },
        { endpoint_id, from: null, to: to === null ? null : iso(to) },
      )
    expect(await find(third.id, null)).toMatchObject({ id: second.id, version: 2 })
    expect(await find(second.id, null)).toMatchObject({ version: 1 })
    expect(await find(third.id, t0 + 1000)).toMatchObject({ version: 1 })
    expect(await find(third.id, t0)).toBeUndefined()
    expect(await find(third.id, null, newId())).toBeUndefined()
    const redrive = { kind: 'redrive' as const, from_view_id: second.id }
    const job = await transact(store, (db) => insertJob(db, account, aJob(endpoint.id, third.id, redrive), t0))
    expect(job).toMatchObject({ kind: 'redrive', from_version: 2, segments: { total: 1 } })
  })

  test('old finished jobs are removed with their units; their artifacts stay', async ({ store }) => {
    const { account, start, view, commits } = await furnished(store, 3)
    const job = await start()
    await transact(store, async (db) => {
      const commit = await findCommit(db, commits[0]?.id ?? '')
      const addition = { view_id: view.id, from_view_id: null, job_id: job.id, artifacts: {}, outcome: anOutcome(view.id) }
      if (commit !== undefined) await insertAddition(db, { commit, ...addition }, t0)
      await setJobStatus(db, account, job.id, 'canceled', t0)
    })
    expect(await removeJobFinishedBefore(store.db, t0, 10)).toBe(0)
    const remove = () => removeJobFinishedBefore(store.db, t0 + 1, 2)
    expect([await remove(), await remove(), await remove(), await remove()]).toEqual([2, 1, 1, 0])
    await expect(getJob(store.db, account, job.id)).rejects.toMatchObject({ code: 'not_found' })
    expect(await store.db.selectFrom('job_units').selectAll().execute()).toEqual([])
    expect(await findCommit(store.db, commits[0]?.id ?? '')).toMatchObject({ added: [view.id] })
  })
})
