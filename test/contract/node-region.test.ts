/** The credential of a node opens the data of its region, and writes under its own id. */
import { describe, expect, test } from 'vitest'
import { commitId } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { dayOf } from '#model/quota.ts'
import { newRegion, type TestAccount, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { anEndpointWithNode, aPublishedView } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

const counts = {
  view_name: 'events',
  view_version: 1,
  processed: 5,
  accepted: 5,
  dropped: 0,
  dlq: 0,
  failed: 0,
  last_error: null,
  cast_nulls: 0,
  errors: {},
}

/** An account with an endpoint in a region, and a node there. */
async function inhabited() {
  const account = await control().newAccount()
  const view = await aPublishedView(account)
  const { region, destination, endpoint, node } = await anEndpointWithNode(control(), account)
  await node.snapshot()
  return { account, region, destination, view, endpoint, node }
}

const commitsOf = async (account: TestAccount, id: string) => (await account.get(`/v1/endpoints/${id}/commits`)).body.items

describe('commits', () => {
  test('are recorded only for endpoints of the region, under the own id, with a name that belongs to it', async () => {
    const [mine, theirs] = [await inhabited(), await inhabited()]
    const own = aCommit(mine.node.id, mine.endpoint.id, 0)
    const of = theirs.node.id
    for (const wrong of [
      aCommit(mine.node.id, theirs.endpoint.id, 1),
      aCommit(of, mine.endpoint.id, 1),
      { ...own, id: commitId(of, own.log, 1) },
      { ...own, id: commitId(mine.node.id, own.log, 7) },
    ]) {
      const answer = await mine.node.call('POST', 'commits', { commits: [own, wrong] })
      expect(answer, wrong.id).toMatchObject({
        status: 422,
        body: { errors: [{ path: expect.stringMatching(/^commits\.1\./) }] },
      })
    }
    expect(await commitsOf(theirs.account, theirs.endpoint.id)).toEqual([])
    expect(await commitsOf(mine.account, mine.endpoint.id)).toEqual([])
    expect(await mine.node.call('POST', 'commits', { commits: [own] })).toMatchObject({ status: 200, body: { new: 1 } })
  })

  test('count for no view of an account that has no endpoint in the region', async () => {
    const [mine, theirs] = [await inhabited(), await inhabited()]
    const counted = { views: [{ view_id: theirs.view.id, ...counts }] }
    const dlq = { 'dlq/events/v1': { key: 'secret', bytes: 1, rows: 1, sha256: 'ab', view_id: theirs.view.id } }
    const destination = { id: theirs.destination.id, bucket: 'other', region: 'eu' }
    for (const more of [counted, { artifacts: dlq, destination }, { ...counted, endpoint_id: newId() }]) {
      const commits = [{ ...aCommit(mine.node.id, mine.endpoint.id, 0), ...more }]
      expect(await mine.node.call('POST', 'commits', { commits })).toMatchObject({ status: 422 })
    }
    expect((await theirs.account.get(`/v1/views/${theirs.view.id}/dlq-files`)).body).toMatchObject({ files: [] })
  })

  test('of an endpoint that this database does not know are recorded, as after a restore', async () => {
    const { node } = await inhabited()
    const commits = [aCommit(node.id, newId(), 0)]
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200, body: { new: 1 } })
  })

  test('of the region before are recorded after a node moved', async () => {
    const { node, endpoint } = await inhabited()
    await node.join({ region: newRegion() })
    const commits = [aCommit(node.id, endpoint.id, 0)]
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200, body: { new: 1 } })
  })

  test('of another node are not found', async () => {
    const [mine, theirs] = [await inhabited(), await inhabited()]
    const commit = aCommit(theirs.node.id, theirs.endpoint.id, 0)
    await theirs.node.call('POST', 'commits', { commits: [commit] })
    expect((await mine.node.call('POST', 'commits/lookup', { ids: [commit.id] })).body.commits).toEqual([])
    expect((await theirs.node.call('POST', 'commits/lookup', { ids: [commit.id] })).body.commits).toHaveLength(1)
  })
})

describe('what a node verifies', () => {
  const scrub = (node: TestNode, path: string, more: object) => node.call('POST', `scrub/${path}`, { node_id: node.id, ...more })

  test('is delivered to endpoints of its region, by any node', async () => {
    const [mine, theirs] = [await inhabited(), await inhabited()]
    const gone = await TestNode.register(control(), mine.region)
    await gone.snapshot()
    const { destination, endpoint } = mine
    const commit = aCommit(gone.id, endpoint.id, 0, { destination: { id: destination.id, bucket: 'before', region: 'eu' } })
    expect(await gone.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200, body: { new: 1 } })
    expect(await scrub(mine.node, 'endpoints', { after: null })).toMatchObject({
      status: 200,
      body: { endpoints: [{ id: endpoint.id, targets: [{ id: destination.id, bucket: destination.bucket }] }], next: null },
    })
    const { key, bytes, sha256 } = commit.artifacts['parquet'] ?? {}
    expect((await scrub(mine.node, 'commits', { endpoint_id: endpoint.id, after: null })).body).toMatchObject({
      commits: [
        { id: commit.id, target: { id: destination.id, bucket: 'before' }, files: [{ kind: 'parquet', key, bytes, sha256 }] },
      ],
      is_last: true,
    })
    const known = { endpoint_id: endpoint.id, ids: [commit.id, 'unknown'] }
    expect((await scrub(mine.node, 'known', known)).body).toEqual({ ids: [commit.id] })
    for (const [path, more] of [
      ['commits', { after: null }],
      ['known', { ids: [] }],
    ] as const)
      expect(await scrub(theirs.node, path, { endpoint_id: endpoint.id, ...more })).toMatchObject({ status: 404 })
    expect((await scrub(theirs.node, 'endpoints', { after: null })).body.endpoints).toMatchObject([{ id: theirs.endpoint.id }])
  })

  test('is divided among the nodes of a region that run', async () => {
    const { account, region, node } = await inhabited()
    const other = await TestNode.register(control(), region)
    for (let count = 1; count < 12; count += 1) await account.post('/v1/endpoints', { region, name: `events ${count}` })
    for (const each of [node, other]) await each.heartbeat()
    const idsOf = async (each: TestNode): Promise<readonly string[]> =>
      (await scrub(each, 'endpoints', { after: null })).body.endpoints.map(({ id }: { id: string }) => id)
    const [first, second] = [await idsOf(node), await idsOf(other)]
    expect(first.length + second.length).toBe(12)
    expect(new Set([...first, ...second]).size).toBe(12)
    expect(Math.min(first.length, second.length)).toBeGreaterThan(0)
  })
})

describe('reports', () => {
  test('about endpoints and views of another region change nothing', async () => {
    const [mine, theirs] = [await inhabited(), await inhabited()]
    const failing_view = { view_id: theirs.view.id, since: '2026-11-20T08:00:00.000Z' }
    const blocked_by = 'a lie'
    await mine.node.heartbeat(
      { blocked: [{ endpoint_id: theirs.endpoint.id, reason: blocked_by }] },
      { lag: [aLag(theirs.endpoint.id, { blocked_by }), aLag(mine.endpoint.id, { blocked_by, failing_view }), aLag(newId())] },
    )
    const { body } = await theirs.account.get(`/v1/endpoints/${theirs.endpoint.id}`)
    expect(JSON.stringify(body)).not.toContain(blocked_by)
    expect(body.lag).toMatchObject({ undelivered_segments: 0 })
    const views = JSON.stringify((await theirs.account.get(`/v1/views/${theirs.view.id}`)).body)
    expect(views).not.toContain(mine.endpoint.id)
    const rows = await control()
      .store.db.selectFrom('endpoint_lags')
      .select('endpoint_id')
      .where('node_id', '=', mine.node.id)
      .execute()
    // Logs of endpoints that nobody knows are for the operator.
    expect(rows).toHaveLength(1)
    await mine.node.heartbeat({}, { lag: [aLag(mine.endpoint.id)] })
  })

  test('use up nothing of an account without an endpoint in the region, and tell nothing about it', async () => {
    const [mine, theirs] = [await inhabited(), await inhabited()]
    const usage = { day: dayOf(control().clock.now()), bytes: 77, records: 1, records_per_second: 0 }
    const report = (node: TestNode, ...ids: readonly string[]) =>
      node.call('POST', 'usage', { node_id: node.id, run: 'a', accounts: ids.map((account_id) => ({ account_id, ...usage })) })
    const [own, foreign] = [mine.account.account_id, theirs.account.account_id]
    expect((await report(theirs.node, foreign)).body.accounts).toMatchObject([{ account_id: foreign, bytes: 77 }])
    expect((await report(mine.node, own, foreign)).body.accounts).toEqual([{ account_id: own, day: usage.day, bytes: 77 }])
    expect((await report(theirs.node, foreign)).body.accounts).toMatchObject([{ account_id: foreign, bytes: 77 }])
  })

  test('about a segment of a job count only from the node that has its lease', async () => {
    const { account, node, endpoint, view, region, destination } = await inhabited()
    const parquet = { key: `p/${endpoint.id}/parquet/0`, bytes: 10, rows: 1, sha256: 'ab' }
    const place = { id: destination.id, bucket: 'lake', region: 'eu' }
    const sealed_at = '2020-01-01T00:00:00.000Z'
    await node.call('POST', 'commits', {
      commits: [aCommit(node.id, endpoint.id, 0, { sealed_at, destination: place, artifacts: { parquet } })],
    })
    await account.post(`/v1/views/${view.id}/backfill`, { endpoint_id: endpoint.id })
    const request = { node_id: node.id, incarnation: 'x', max: 1, holding: [] }
    const { body } = await node.call('POST', 'jobs/lease', request)
    const [{ lease_id, job_id, commit }] = body.units
    const other = await TestNode.register(control(), region)
    const reports = [{ outcome: 'failed', lease_id, job_id, commit_id: commit.id, reason: 'a lie', records: 1 }]
    expect((await other.call('POST', 'jobs/report', { node_id: other.id, reports })).body.results).toEqual([
      { lease_id, result: 'stale' },
    ])
    const foreign = { 'dlq/events/v1': { key: 'k', bytes: 1, rows: 1, sha256: 'ab', view_id: newId() } }
    const done = {
      outcome: 'done',
      lease_id,
      job_id,
      commit_id: commit.id,
      artifacts: foreign,
      view: { view_id: view.id, ...counts },
    }
    expect(await node.call('POST', 'jobs/report', { node_id: node.id, reports: [done] })).toMatchObject({ status: 422 })
    expect((await node.call('POST', 'jobs/report', { node_id: node.id, reports })).body.results).toEqual([
      { lease_id, result: 'recorded' },
    ])
  })
})

describe('destinations', () => {
  test('are returned only of accounts with an endpoint in the region, also a deleted one', async () => {
    const [mine, theirs] = [await inhabited(), await inhabited()]
    const status = async (id: string) => (await mine.node.call('GET', `destinations/${id}`)).status
    expect([await status(mine.destination.id), await status(theirs.destination.id)]).toEqual([200, 404])
    await mine.account.delete(`/v1/endpoints/${mine.endpoint.id}?force=true`)
    expect(await status(mine.destination.id)).toBe(200)
  })
})
