import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { newRegion, useControl } from '../support/control.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

/** An endpoint in a region of its own, and a node that reports about it. */
async function furnished() {
  const account = await control().newAccount()
  const region = newRegion()
  const { body: endpoint } = await account.post('/v1/endpoints', { region })
  const node = await TestNode.register(control(), region)
  const at = new Date(Math.floor(Date.now() / 10_000) * 10_000).toISOString()
  const counts = { records: 10, bytes: 500, requests: 2, refused: { quota_exceeded: 1 }, acknowledged_after: { 20: 2 } }
  const report = { node_id: node.id, run: 'a', number: 1, items: [{ endpoint_id: endpoint.id, at, ...counts }] }
  return { account, endpoint, node, at, report, path: `/v1/endpoints/${endpoint.id}/series` }
}

describe('GET /v1/endpoints/{id}/series', () => {
  test('200 without buckets while nothing happens', async () => {
    const { account, endpoint, path } = await furnished()
    const { status, body } = await account.as('metrics').get(path)
    expect(status).toBe(200)
    expect(body).toMatchObject({ endpoint_id: endpoint.id, step_seconds: 10, buckets: [] })
    expect(Date.parse(body.until) - Date.parse(body.since)).toBeLessThanOrEqual(3_600_000)
  })

  test.each([
    ['an hour', 3_600_000, 10],
    ['twelve hours', 12 * 3_600_000, 60],
    ['two days', 2 * 86_400_000, 300],
  ])('200 for %s, counted from when it was asked, in the shortest buckets that fit', async (_, windowMs, step_seconds) => {
    const { account, path } = await furnished()
    const since = new Date(Date.now() - windowMs - 1_000).toISOString()
    expect(await account.get(`${path}?since=${since}`)).toMatchObject({ status: 200, body: { step_seconds } })
  })

  test('200 has what a node reported, and what was delivered', async () => {
    const { account, endpoint, node, at, report, path } = await furnished()
    for (let times = 0; times < 2; times += 1)
      expect(await node.call('POST', 'series', report)).toMatchObject({ status: 200, body: { recorded: true } })
    const sealed_at = new Date(Date.now() - 2_000).toISOString()
    await node.call('POST', 'commits', { commits: [aCommit(node.id, endpoint.id, 1, { records: 10, sealed_at })] })
    const { body } = await account.get(`${path}?step=1h`)
    const sum = (name: string) =>
      body.buckets.reduce((all: number, bucket: Record<string, number>) => all + (bucket[name] ?? 0), 0)
    expect(['records', 'bytes', 'requests', 'commits', 'committed_records'].map(sum)).toEqual([10, 500, 2, 1, 10])
    expect(body.buckets.at(-1).commit_lag_ms.max).toBeGreaterThanOrEqual(2_000)
    const { body: fine } = await account.get(path)
    const bucket = fine.buckets.find((each: { at: string }) => each.at === at)
    expect(bucket).toMatchObject({ records: 10, refused: { quota_exceeded: 1 }, ack_latency_ms: { p50: 2.93, p99: 2.93 } })
  })

  test('422 for a length or time that is not one', async () => {
    const { account, path } = await furnished()
    for (const query of ['step=7s', 'since=yesterday', 'metric=records'])
      expect(await account.get(`${path}?${query}`), query).toMatchObject({ status: 422 })
  })
})

describe('GET /v1/views/{id}/series', () => {
  test('200 has all versions of the view, the newest first, each with its own counts', async () => {
    const { account, endpoint, node } = await furnished()
    const columns = [{ name: 'a', type: 'VARCHAR', path: '$.a' }]
    const { body: first } = await account.post('/v1/views', { name: 'events', definition: { columns } })
    await account.post(`/v1/views/${first.id}/publish`)
    const { body: second } = await account.post(`/v1/views/${first.id}/versions`)
    await account.post(`/v1/views/${second.id}/publish`)
    const none = { dropped: 0, failed: 0, cast_nulls: 0, errors: {}, last_error: null }
    const views = [first, second].map(({ id }, index) => ({
      ...{ view_id: id, view_name: 'events', view_version: index + 1, ...none },
      ...{ processed: 10, accepted: 10 - index, dlq: index },
    }))
    const commit = aCommit(node.id, endpoint.id, 1, { views })
    expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200 })
    for (const query of ['', `?endpoint_id=${endpoint.id}`]) {
      const { status, body } = await account.get(`/v1/views/${first.id}/series${query}`)
      expect(status).toBe(200)
      expect(body).toMatchObject({
        view_name: 'events',
        versions: [
          {
            view_id: second.id,
            view_version: 2,
            buckets: [{ accepted: 9, dropped: 0, dlq: 1, failed: 0, rows: 9, duplicates: 0 }],
          },
          { view_id: first.id, view_version: 1, buckets: [{ accepted: 10, dropped: 0, dlq: 0, failed: 0 }] },
        ],
      })
    }
  })

  test('404 for an endpoint of another account', async () => {
    const { endpoint } = await furnished()
    const columns = [{ name: 'a', type: 'VARCHAR', path: '$.a' }]
    const other = await control().newAccount()
    const { body: foreign } = await other.post('/v1/views', { name: 'events', definition: { columns } })
    expect(await other.get(`/v1/views/${foreign.id}/series?endpoint_id=${endpoint.id}`)).toMatchObject({ status: 404 })
  })
})

describe('POST /internal/v1/series', () => {
  test('403 for another node, 422 for reports that make no sense', async () => {
    const { node, report } = await furnished()
    expect(await node.call('POST', 'series', { ...report, node_id: newId() })).toMatchObject({ status: 403 })
    const [item] = report.items
    for (const wrong of [{ records: -1 }, { refused: { 'Not A Reason': 1 } }, { acknowledged_after: { 120: 1 } }, { at: 'now' }])
      expect(await node.call('POST', 'series', { ...report, items: [{ ...item, ...wrong }] })).toMatchObject({ status: 422 })
  })
})
