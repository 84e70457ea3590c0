import { describe, expect, test } from 'vitest'
import type { ArtifactFile, ViewOutcome } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { jobLimits } from '#model/limits.ts'
import { leaseLimits } from '#store/limits.ts'
import { newRegion, type TestAccount, useControl } from '../support/control.ts'
import { anEndpointWithNode, aPublishedView } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

const definition = { columns: [{ name: 'a', type: 'INTEGER', path: '$.a', required: true }] }
const at = (seq: number) => `2026-11-20T08:00:${String(seq).padStart(2, '0')}.000Z`

/** Creates an endpoint with one segment per second, delivered with version 1 of a view and one rejected row each, and a published version 2. */
async function furnished({ segments = 3 } = {}) {
  const account = await control().newAccount()
  const first = await aPublishedView(account, 'events', definition)
  const { body: second } = await account.post(`/v1/views/${first.id}/versions`)
  await account.post(`/v1/views/${second.id}/publish`)
  const { destination, endpoint, node, place } = await anEndpointWithNode(control(), account, { bucket: 'lake' })
  const files = (seq: number): Record<string, ArtifactFile> => {
    const file = (folder: string) => ({ key: `old/prefix/${endpoint.id}/${folder}/${seq}`, bytes: 10, rows: 1, sha256: 'ab' })
    const ofView = { view_id: first.id, view_version: 1 }
    return {
      parquet: file('parquet'),
      'views/events/v1': { ...file('views/events/v1'), ...ofView },
      'dlq/events/v1': { ...file('dlq/events/v1'), ...ofView },
    }
  }
  const commits = Array.from({ length: segments }, (_, seq) =>
    aCommit(node.id, endpoint.id, seq, {
      ...{ sealed_at: at(seq), destination: place, artifacts: files(seq) },
      views: [outcomeOf({ id: first.id, name: 'events', version: 1 }, { accepted: 9, dropped: 0 })],
    }),
  )
  if (segments > 0) expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200 })
  const backfill = (body: object = {}) => account.post(`/v1/views/${second.id}/backfill`, { endpoint_id: endpoint.id, ...body })
  const redrive = (body: object = {}) => account.post(`/v1/views/${second.id}/redrive`, { endpoint_id: endpoint.id, ...body })
  return { account, endpoint, destination, node, commits, first, second, backfill, redrive, place, worker: new Worker(node) }
}

/** A process that takes leases and reports their results. */
class Worker {
  readonly node: TestNode
  incarnation = 'first'
  constructor(node: TestNode) {
    this.node = node
  }
  async lease(max: number, holding: readonly string[] = []) {
    const request = { node_id: this.node.id, incarnation: this.incarnation, max, holding }
    const { status, body } = await this.node.call('POST', 'jobs/lease', request)
    expect(status).toBe(200)
    return body
  }
  // biome-ignore lint/suspicious/noExplicitAny: units as received
  async report(unit: any, outcome: object): Promise<string> {
    const { lease_id, job_id, commit } = unit
    const reports = [{ lease_id, job_id, commit_id: commit.id, ...outcome }]
    const { status, body } = await this.node.call('POST', 'jobs/report', { node_id: this.node.id, reports })
    expect(status).toBe(200)
    return body.results[0].result
  }
}

// biome-ignore lint/suspicious/noExplicitAny: units as received
function done(unit: any) {
  const { id, name, version } = unit.view
  const ofView = { view_id: id, view_version: version }
  const file = (kind: string) => ({ key: `new/${kind}/${unit.commit.seq}`, bytes: 7, rows: 8, sha256: 'cd', ...ofView })
  const kind = `${name}/v${version}`
  const view = outcomeOf(unit.view)
  return { outcome: 'done', artifacts: { [`views/${kind}`]: file('views'), [`dlq/${kind}`]: file('dlq') }, view }
}

type Version = { readonly id: string; readonly name: string; readonly version: number }

function outcomeOf({ id, name, version }: Version, change: Partial<ViewOutcome> = {}): ViewOutcome {
  return {
    ...{ view_id: id, view_name: name, view_version: version },
    ...{ processed: 10, accepted: 8, dropped: 1, dlq: 1, failed: 0, cast_nulls: 0 },
    errors: { cast_failed: 1 },
    last_error: { code: 'cast_failed', message: 'the value "x"', at: at(0) },
    ...change,
  }
}

function fileOf({ id, version }: { readonly id: string; readonly version: number }, key: string): ArtifactFile {
  return { key, bytes: 7, rows: 1, sha256: 'cd', view_id: id, view_version: version }
}

/** Result of a re-drive of one row. */
// biome-ignore lint/suspicious/noExplicitAny: units as received
function redriven(unit: any, change: Partial<ViewOutcome> = {}) {
  const accepted = { processed: 1, accepted: 1, dropped: 0, dlq: 0, errors: {}, last_error: null }
  return { ...done(unit), artifacts: {}, view: outcomeOf(unit.view, { ...accepted, ...change }) }
}

const none = { processed: 0, accepted: 0, dropped: 0, dlq: 0, failed: 0, rows: 0, duplicates: 0 }

describe('POST /v1/views/{id}/backfill', () => {
  test('202 with the job', async () => {
    const { backfill, second, endpoint, account } = await furnished()
    const { status, body } = await backfill({ from: '2026-11-20T09:00:00.000+01:00' })
    expect({ status, body }).toMatchObject({
      status: 202,
      body: {
        ...{ kind: 'backfill', status: 'running', view_id: second.id, view_name: 'events', view_version: 2, from_version: null },
        ...{ endpoint_id: endpoint.id, from: at(0), to: null, created_by: `key:${account.key_id}` },
        created_by_name: expect.any(String),
        ...{ segments: { total: 3, done: 0, skipped: 0, failed: 0 }, counters: none },
        ...{ started_at: null, finished_at: null, last_error: null },
      },
    })
    expect((await account.get(`/v1/jobs/${body.id}`)).body).toEqual({ ...body, reasons: [] })
  })

  test('202 covers segments sealed from `from` until before `to`', async () => {
    const { backfill, account } = await furnished({ segments: 5 })
    const total = async (range: object) => {
      const { body } = await backfill(range)
      await account.post(`/v1/jobs/${body.id}/cancel`)
      return body.segments.total
    }
    expect(await total({ from: at(1), to: at(3) })).toBe(2)
    expect(await total({ from: at(4) })).toBe(1)
    expect(await total({ to: at(4) })).toBe(4)
  })

  test('202 with a succeeded job if there is nothing to do', async () => {
    const { backfill } = await furnished({ segments: 0 })
    const { status, body } = await backfill()
    expect({ status, body }).toMatchObject({ status: 202, body: { status: 'succeeded', segments: { total: 0 } } })
    expect(body.finished_at).toBe(body.created_at)
  })

  test('409 while a job with this version runs on the endpoint; 202 afterwards', async () => {
    const { backfill, redrive, account } = await furnished()
    const { body: job } = await backfill({ to: at(1) })
    for (const again of [await backfill({ from: at(1) }), await redrive()]) {
      expect(again).toMatchObject({ status: 409, body: { error: 'conflict', detail: expect.stringContaining('cancel') } })
    }
    await account.post(`/v1/jobs/${job.id}/cancel`)
    expect(await backfill()).toMatchObject({ status: 202 })
  })

  test('409 for one job too many', async () => {
    const { account, endpoint, node, second, place } = await furnished({ segments: 0 })
    for (let count = 0; count <= jobLimits.activePerAccountMax; count += 1) {
      const { body: other } = await account.post('/v1/endpoints', { region: node.region, destination_id: place.id })
      await node.call('POST', 'commits', { commits: [aCommit(node.id, other.id, 1_000 + count)] })
      const answer = await account.post(`/v1/views/${second.id}/backfill`, { endpoint_id: other.id })
      expect(answer.status).toBe(count < jobLimits.activePerAccountMax ? 202 : 409)
    }
    expect(endpoint.id).toBeDefined()
  })

  test('422 for an unpublished version, a foreign endpoint, an invalid range and an unknown field', async () => {
    const { account, first, second, endpoint, backfill } = await furnished()
    const { body: draft } = await account.post(`/v1/views/${first.id}/versions`)
    const body = { endpoint_id: endpoint.id }
    const detail = expect.stringContaining('draft')
    expect(await account.post(`/v1/views/${draft.id}/backfill`, body)).toMatchObject({ status: 422, body: { detail } })
    const foreign = await furnished({ segments: 0 })
    for (const endpoint_id of [newId(), foreign.endpoint.id]) {
      const errors = [{ path: 'endpoint_id', message: 'is not an endpoint of the account' }]
      expect(await backfill({ endpoint_id })).toMatchObject({ status: 422, body: { errors } })
    }
    expect(await backfill({ from: at(2), to: at(2) })).toMatchObject({ status: 422, body: { errors: [{ path: 'to' }] } })
    expect(await backfill({ from: 'yesterday' })).toMatchObject({ status: 422, body: { errors: [{ path: 'from' }] } })
    expect(await backfill({ surplus: 1 })).toMatchObject({ status: 422 })
    await account.post(`/v1/views/${second.id}/archive`)
    expect(await backfill()).toMatchObject({ status: 422 })
  })
})

describe('POST /v1/views/{id}/redrive', () => {
  test('202 reads the latest other version with DLQ rows in the range', async () => {
    const { redrive } = await furnished()
    expect(await redrive()).toMatchObject({
      status: 202,
      body: { kind: 'redrive', view_version: 2, from_version: 1, segments: { total: 3 } },
    })
  })

  test('422 for the version itself, an unknown version, a draft, and a range without rejected rows', async () => {
    const { account, first, redrive } = await furnished({ segments: 0 })
    await account.post(`/v1/views/${first.id}/versions`)
    for (const from_version of [2, 3, 4, undefined]) {
      expect(await redrive({ from_version })).toMatchObject({ status: 422, body: { errors: [{ path: 'from_version' }] } })
    }
    expect(await redrive({ from_version: 1 })).toMatchObject({ status: 202, body: { status: 'succeeded' } })
  })
})

describe('GET /v1/jobs', () => {
  test('200 newest first, by page, filtered', async () => {
    const { account, backfill, redrive, second } = await furnished()
    const { body: older } = await backfill()
    await account.post(`/v1/jobs/${older.id}/cancel`)
    const { body: newer } = await redrive()
    const ids = async (query: string) =>
      (await account.as('metrics').get(`/v1/jobs?${query}`)).body.items.map(({ id }: { id: string }) => id)
    expect(new Set(await ids(''))).toEqual(new Set([newer.id, older.id]))
    expect(await ids('status=canceled')).toEqual([older.id])
    expect(await ids(`view_id=${newId()}`)).toEqual([])
    expect(await ids(`view_id=${second.id}&limit=1`)).toHaveLength(1)
    expect(await ids(`endpoint_id=${newer.endpoint_id}&status=canceled`)).toEqual([older.id])
    expect(await account.get(`/v1/endpoints?name=${newer.endpoint_name}`)).toMatchObject({
      body: { items: [{ id: newer.endpoint_id }] },
    })
    await account.patch(`/v1/endpoints/${newer.endpoint_id}`, { name: 'checkout' })
    expect(await account.get(`/v1/jobs/${newer.id}`)).toMatchObject({ body: { endpoint_name: 'checkout' } })
    expect(await ids(`endpoint_id=${newId()}`)).toEqual([])
    expect((await (await control().newAccount()).get('/v1/jobs')).body).toMatchObject({ items: [], total: 0 })
  })

  test('422 for an unknown status', async () => {
    const account = await control().newAccount()
    expect(await account.get('/v1/jobs?status=odd')).toMatchObject({ status: 422 })
  })
})

describe.each(['pause', 'resume', 'cancel'])('POST /v1/jobs/{id}/%s', (verb) => {
  test('422 for a finished job', async () => {
    const { account, backfill } = await furnished({ segments: 0 })
    const { body } = await backfill()
    expect(await account.post(`/v1/jobs/${body.id}/${verb}`)).toMatchObject({ status: 422 })
  })
})

describe('the life cycle of a job', () => {
  test('a paused job leases nothing until it is resumed; a canceled job never does', async () => {
    const { account, backfill, worker } = await furnished()
    const { body: job } = await backfill()
    const to = async (verb: string, status: number) =>
      expect(await account.post(`/v1/jobs/${job.id}/${verb}`)).toMatchObject({ status })
    const [unit] = (await worker.lease(1)).units
    await to('pause', 200)
    await to('pause', 200)
    expect(await worker.lease(1, [unit.lease_id])).toEqual({ units: [], held: [unit.lease_id], more: false })
    expect(await worker.report(unit, done(unit))).toBe('recorded')
    await to('resume', 200)
    const [next] = (await worker.lease(1)).units
    await to('cancel', 200)
    expect(await worker.lease(1, [next.lease_id])).toEqual({ units: [], held: [], more: false })
    await to('resume', 422)
    const { body } = await account.get(`/v1/jobs/${job.id}`)
    expect(body).toMatchObject({ status: 'canceled', segments: { total: 3, done: 1 }, finished_at: expect.any(String) })
  })

  test('a result is counted once, in the job and for its view when it ran, and listed with its commit', async () => {
    const { destination, account, backfill, worker, second, endpoint } = await furnished()
    const { body: job } = await backfill()
    const { units } = await worker.lease(8)
    expect(units.map((unit: { commit: { seq: number } }) => unit.commit.seq)).toEqual([0, 1, 2])
    const [unit] = units
    expect(unit).toMatchObject({
      view: { id: second.id, name: 'events', version: 2, definition },
      source: { kind: 'parquet', artifact: { rows: 1 }, from_version: null },
      target: { bucket: 'lake', prefix: 'old/prefix', role_arn: destination.role_arn },
      lease_ms: leaseLimits.leaseMs,
    })
    expect(await worker.report(unit, done(unit))).toBe('recorded')
    expect(await worker.report(unit, done(unit))).toBe('known')
    const { body } = await account.get(`/v1/jobs/${job.id}`)
    expect(body).toMatchObject({
      status: 'running',
      segments: { total: 3, done: 1 },
      counters: { processed: 10, accepted: 8, dropped: 1, dlq: 1, failed: 0 },
    })
    expect(body.started_at).not.toBeNull()
    const { body: commits } = await account.get(`/v1/endpoints/${endpoint.id}/commits`)
    expect(Object.keys(commits.items.at(-1).artifacts)).toEqual([
      ...['parquet', 'views/events/v1', 'dlq/events/v1', 'views/events/v2', 'dlq/events/v2'],
    ])
    const outcome = { processed: 10, accepted: 8, dropped: 1, dlq: 1, failed: 0, redriven: 0 }
    expect((await account.get(`/v1/views/${second.id}/metrics`)).body).toMatchObject({
      endpoints: [
        {
          ...{ endpoint_id: endpoint.id, last_24h: outcome, all_time: outcome },
          ...{ error_rate_pct: 10, has_errors: true, error_count_24h: 1, total_error_count: 1 },
          ...{ last_error_at: at(0), last_error_code: 'cast_failed', last_error_message: 'the value "x"' },
        },
      ],
      aggregated: { last_24h: outcome, has_errors: true, total_error_count_24h: 1 },
    })
    const { body: series } = await account.get(`/v1/views/${second.id}/series?step=1m`)
    expect(series.versions.find(({ view_version }: { view_version: number }) => view_version === 2)).toMatchObject({
      buckets: [{ accepted: 8, dropped: 1, dlq: 1, failed: 0 }],
    })
    expect((await account.get(`/v1/views/${second.id}/dlq-files`)).body).toMatchObject({
      total: 1,
      files: [{ segment_seq: 0, s3_key: 'new/dlq/0', s3_bucket: 'lake' }],
    })
    for (const rest of units.slice(1)) await worker.report(rest, done(rest))
    expect((await account.get(`/v1/jobs/${job.id}`)).body).toMatchObject({ status: 'succeeded', segments: { done: 3 } })
  })

  test('repeating the job, or a re-drive, skips everything: no segment gets a version twice', async () => {
    const { account, backfill, redrive, worker } = await furnished()
    await backfill()
    for (const unit of (await worker.lease(8)).units) await worker.report(unit, done(unit))
    for (const again of [backfill, redrive]) {
      const { body: job } = await again()
      expect((await worker.lease(8)).units).toEqual([])
      expect((await account.get(`/v1/jobs/${job.id}`)).body).toMatchObject({
        status: 'succeeded',
        segments: { total: 3, skipped: 3 },
        counters: none,
        reasons: [{ outcome: 'skipped', reason: 'the segment already has an output of this view version', segments: 3 }],
      })
    }
  })

  test('a version that was delivered live is skipped', async () => {
    const { account, first, endpoint, worker } = await furnished()
    const { body: job } = await account.post(`/v1/views/${first.id}/backfill`, { endpoint_id: endpoint.id })
    await worker.lease(8)
    expect((await account.get(`/v1/jobs/${job.id}`)).body).toMatchObject({ status: 'succeeded', segments: { skipped: 3 } })
  })

  test('a commit without its records is skipped, with the reason', async () => {
    const { account, backfill, worker, node, endpoint, place } = await furnished({ segments: 0 })
    await node.call('POST', 'commits', { commits: [aCommit(node.id, endpoint.id, 9, { destination: place, artifacts: {} })] })
    const { body: job } = await backfill()
    await worker.lease(8)
    const reason = 'the records are not in the bucket: the segment was committed without a raw segment and without raw Parquet'
    expect((await account.get(`/v1/jobs/${job.id}`)).body.reasons).toEqual([{ outcome: 'skipped', reason, segments: 1 }])
  })

  test('a re-drive reads the DLQ rows', async () => {
    const { redrive, worker } = await furnished({ segments: 1 })
    await redrive()
    const [unit] = (await worker.lease(1)).units
    expect(unit.source).toMatchObject({
      kind: 'dlq',
      from_version: 1,
      artifact: { key: expect.stringContaining('dlq/events/v1') },
    })
  })

  test('a re-drive that leaves no dead letter ends the errors of the version that rejected them, also once that is detached', async () => {
    const { account, first, second, endpoint, redrive, worker } = await furnished({ segments: 2 })
    const path = `/v1/endpoints/${endpoint.id}/views`
    const attach = async ({ id: view_id }: { readonly id: string }) => (await account.post(path, { view_id })).body
    const [binding] = [await attach(first), await attach(second)]
    expect(await account.delete(`${path}/${binding.id}`)).toMatchObject({ status: 204 })
    const metricsOf = async (id: string) => (await account.get(`/v1/views/${id}/metrics`)).body.endpoints[0]
    const red = { error_rate_pct: 10, has_errors: true, error_count_24h: 2, total_error_count: 2 }
    expect(await metricsOf(first.id)).toMatchObject(red)
    await redrive()
    const [one, other] = (await worker.lease(2)).units
    await worker.report(one, redriven(one))
    expect(await metricsOf(first.id)).toMatchObject({
      ...{ error_rate_pct: 5, has_errors: true, error_count_24h: 1, total_error_count: 1 },
      last_24h: { processed: 20, accepted: 18, dropped: 0, dlq: 2, failed: 0, redriven: 1 },
    })
    // The other is rejected again, and is a dead letter of the second version from now on.
    const rejected = { accepted: 0, dlq: 1, errors: { cast_failed: 1 } }
    await worker.report(other, {
      ...redriven(other, rejected),
      artifacts: { 'dlq/events/v2/redrive-v1': fileOf(second, 'again') },
    })
    const green = { error_rate_pct: 0, has_errors: false, error_count_24h: 0, total_error_count: 0 }
    expect(await metricsOf(first.id)).toMatchObject({ ...green, last_24h: { dlq: 2, redriven: 2 } })
    expect(await metricsOf(second.id)).toMatchObject({ error_rate_pct: 50, has_errors: true, last_24h: { processed: 2 } })
    const { body: files } = await account.get(`/v1/views/${first.id}/dlq-files`)
    expect(files.files).toMatchObject([{ redriven_at: expect.any(String) }, { redriven_at: expect.any(String) }])

    const { body: third } = await account.post(`/v1/views/${first.id}/versions`)
    await account.post(`/v1/views/${third.id}/publish`)
    await account.post(`/v1/views/${third.id}/redrive`, { endpoint_id: endpoint.id })
    const [last] = (await worker.lease(2)).units
    expect(last.source).toMatchObject({ from_version: 2 })
    await worker.report(last, redriven(last))
    expect(await metricsOf(second.id)).toMatchObject({ ...green, last_24h: { processed: 2, dlq: 1, redriven: 1 } })
    expect(await metricsOf(first.id)).toMatchObject({ ...green, last_24h: { dlq: 2, redriven: 2 } })
  })

  test('an outcome of another view than that of the job is refused', async () => {
    const { first, backfill, worker } = await furnished({ segments: 1 })
    await backfill()
    const [unit] = (await worker.lease(1)).units
    const outcome = done(unit)
    const { lease_id, job_id, commit } = unit
    const reports = [{ lease_id, job_id, commit_id: commit.id, ...outcome, view: { ...outcome.view, view_id: first.id } }]
    const report = { node_id: worker.node.id, reports }
    expect(await worker.node.call('POST', 'jobs/report', report)).toMatchObject({ status: 422 })
  })

  test('a failed segment fails the job, and another job can repeat it', async () => {
    const { account, backfill, worker } = await furnished({ segments: 2 })
    const { body: job } = await backfill()
    const [bad, good] = (await worker.lease(8)).units
    await worker.report(bad, { outcome: 'failed', reason: 'too large', records: 10 })
    await worker.report(good, done(good))
    expect((await account.get(`/v1/jobs/${job.id}`)).body).toMatchObject({
      ...{ status: 'failed', last_error: 'too large', segments: { done: 1, failed: 1 } },
      counters: { processed: 20, accepted: 8, dropped: 1, dlq: 1, failed: 10 },
      reasons: [{ outcome: 'failed', reason: 'too large', segments: 1 }],
    })
    await backfill()
    expect((await worker.lease(8)).units).toMatchObject([{ commit: { id: bad.commit.id } }])
  })

  test('a deleted destination fails the segment', async () => {
    const { account, backfill, worker, endpoint, destination } = await furnished({ segments: 1 })
    await account.patch(`/v1/endpoints/${endpoint.id}`, { destination_id: null })
    expect(await account.delete(`/v1/destinations/${destination.id}`)).toMatchObject({ status: 204 })
    const { body: job } = await backfill()
    await worker.lease(8)
    expect((await account.get(`/v1/jobs/${job.id}`)).body).toMatchObject({ status: 'failed', segments: { failed: 1 } })
  })
})

describe('a lease', () => {
  async function leased() {
    const furniture = await furnished({ segments: 1 })
    const { body: job } = await furniture.backfill()
    const [unit] = (await furniture.worker.lease(1)).units
    return { ...furniture, job, unit }
  }
  const progress = async (account: TestAccount, job: { id: string }) => (await account.get(`/v1/jobs/${job.id}`)).body

  test('belongs to one node while it is renewed; after it expires another node gets it, and late reports are ignored', async () => {
    const { account, worker, node, unit, job } = await leased()
    const other = new Worker(await TestNode.register(control(), node.region))
    control().clock.advance(leaseLimits.leaseMs - 1_000)
    expect((await worker.lease(0, [unit.lease_id])).held).toEqual([unit.lease_id])
    control().clock.advance(leaseLimits.leaseMs - 1_000)
    expect((await other.lease(1)).units).toEqual([])
    control().clock.advance(2_000)
    const [again] = (await other.lease(1)).units
    expect(again.commit).toEqual(unit.commit)
    expect(await worker.report(unit, done(unit))).toBe('stale')
    expect((await worker.lease(1, [unit.lease_id])).held).toEqual([])
    expect(await other.report(again, done(again))).toBe('recorded')
    expect(await progress(account, job)).toMatchObject({ status: 'succeeded', counters: { processed: 10 } })
  })

  test('of a process that was killed is leased again at once, then later each time, and the unit never fails for it', async () => {
    const { account, worker, job } = await leased()
    worker.incarnation = 'after the first'
    expect((await worker.lease(1)).units).toHaveLength(1)
    for (let deaths = 2, waitMs: number = leaseLimits.lostDelayMsMin; deaths <= 8; deaths += 1) {
      worker.incarnation = `after ${deaths}`
      expect((await worker.lease(1)).units).toEqual([])
      expect(await progress(account, job)).toMatchObject({
        status: 'running',
        last_error: expect.stringMatching(
          new RegExp(`ended ${deaths} times while .*; it is tried again after ${waitMs / 1000} s`),
        ),
      })
      control().clock.advance(waitMs - 2_000)
      expect((await worker.lease(1)).units).toEqual([])
      control().clock.advance(2_000)
      if (deaths < 8) expect((await worker.lease(1)).units).toHaveLength(1)
      waitMs = Math.min(leaseLimits.lostDelayMsMax, 2 * waitMs)
    }
    const [unit] = (await worker.lease(1)).units
    expect(await worker.report(unit, done(unit))).toBe('recorded')
    expect(await progress(account, job)).toMatchObject({ status: 'succeeded', segments: { done: 1, failed: 0 } })
  })

  test('of a node that was killed is leased to another, which waits longer each time, and goes on with other units', async () => {
    const { account, worker, node, job } = await leased()
    const other = new Worker(await TestNode.register(control(), node.region))
    control().clock.advance(leaseLimits.leaseMs)
    expect((await other.lease(1)).units).toHaveLength(1)
    control().clock.advance(leaseLimits.leaseMs)
    expect((await worker.lease(1)).units).toEqual([])
    expect(await progress(account, job)).toMatchObject({
      status: 'running',
      last_error: expect.stringContaining('ended 2 times'),
    })
    control().clock.advance(leaseLimits.lostDelayMsMin)
    const [unit] = (await worker.lease(1)).units
    expect(await worker.report(unit, done(unit))).toBe('recorded')
    expect(await progress(account, job)).toMatchObject({ status: 'succeeded' })
  })

  test('whose response was lost, or that was released, does not count as a crash', async () => {
    const { worker } = await leased()
    for (let times = 0; times < 6; times += 1) {
      const [unit] = (await worker.lease(1)).units
      expect(unit).toBeDefined()
      if (times % 2 === 0) expect(await worker.report(unit, { outcome: 'released' })).toBe('recorded')
    }
  })

  test('with a transient failure waits for its retry, and the job reports the error', async () => {
    const { account, worker, unit, job } = await leased()
    expect(await worker.report(unit, { outcome: 'retry', reason: '503 SlowDown' })).toBe('recorded')
    expect((await worker.lease(1)).units).toEqual([])
    expect(await progress(account, job)).toMatchObject({ status: 'running', last_error: '503 SlowDown' })
    control().clock.advance(leaseLimits.retryMs)
    expect((await worker.lease(1)).units).toHaveLength(1)
  })

  test('of a canceled job blocks the segment for the next job until the node releases it', async () => {
    const { account, worker, node, unit, job, redrive } = await leased()
    await account.post(`/v1/jobs/${job.id}/cancel`)
    await redrive()
    const other = new Worker(await TestNode.register(control(), node.region))
    expect((await other.lease(1)).units).toEqual([])
    // The node had already written it, so it is recorded.
    expect(await worker.report(unit, done(unit))).toBe('recorded')
    expect((await other.lease(1)).units).toEqual([])
    expect(await progress(account, job)).toMatchObject({ status: 'canceled', segments: { done: 1 }, counters: { processed: 10 } })
  })

  test('is given only to nodes of the endpoint’s region', async () => {
    const { backfill, worker, node } = await furnished()
    await backfill()
    const elsewhere = new Worker(await TestNode.register(control(), newRegion()))
    expect((await elsewhere.lease(8)).units).toEqual([])
    const request = { node_id: node.id, incarnation: 'x', max: 1, holding: [] }
    expect(await node.call('POST', 'jobs/lease', request, 'wrong')).toMatchObject({ status: 401 })
    expect(await node.call('POST', 'jobs/lease', { ...request, max: 1_000 })).toMatchObject({ status: 422 })
    expect((await worker.lease(1)).more).toBe(true)
  })
})
