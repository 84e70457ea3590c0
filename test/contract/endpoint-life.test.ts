/** Pausing, resuming and deleting an endpoint. */
import { describe, expect } from 'vitest'
import { newControl, newRegion, type TestAccount, testWithAccount, useControl } from '../support/control.ts'
import { aLag, closedLag } from '../support/lags.ts'
import { aDestination, aPublishedView } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()
const test = testWithAccount(control)

async function made(account: TestAccount, more: object = {}) {
  const { status, body } = await account.post('/v1/endpoints', { region: newRegion(), ...more })
  expect(status).toBe(201)
  return body
}

/** Makes an endpoint that a node has received, so that it stays after its deletion until the node reports. */
async function received(account: TestAccount) {
  const endpoint = await made(account)
  const node = await TestNode.register(control(), endpoint.region)
  await node.snapshot()
  return { id: endpoint.id as string, node }
}

async function stateSeenBy(node: TestNode, endpoint_id: string) {
  return (await node.snapshot()).endpoints.find(({ id }) => id === endpoint_id)
}

describe.each(['pause', 'resume'] as const)('POST /v1/endpoints/{id}/%s', (verb) => {
  test('409 while it is being deleted', async ({ account }) => {
    const { id } = await received(account)
    await account.delete(`/v1/endpoints/${id}`)
    expect(await account.post(`/v1/endpoints/${id}/${verb}`)).toMatchObject({ status: 409, body: { error: 'conflict' } })
  })
})

describe('a paused endpoint', () => {
  test('200 has the status paused, in lists and snapshots too, until it is resumed', async ({ account }) => {
    const { id, region } = await made(account)
    await made(account)
    const node = await TestNode.register(control(), region)
    expect(await account.post(`/v1/endpoints/${id}/pause`)).toMatchObject({ status: 200, body: { id, status: 'paused' } })
    expect(await account.post(`/v1/endpoints/${id}/pause`)).toMatchObject({ status: 200, body: { status: 'paused' } })
    expect(await account.get('/v1/endpoints?status=paused')).toMatchObject({ body: { total: 1, items: [{ id }] } })
    expect(await account.get('/v1/endpoints?status=deploying')).toMatchObject({ body: { total: 1 } })
    expect(await stateSeenBy(node, id)).toMatchObject({ desired_state: 'paused', segment_max_age_seconds: 60 })
    expect(await account.post(`/v1/endpoints/${id}/resume`)).toMatchObject({ status: 200, body: { status: 'deploying' } })
    expect(await account.post(`/v1/endpoints/${id}/resume`)).toMatchObject({ status: 200 })
    expect(await stateSeenBy(node, id)).toMatchObject({ desired_state: 'active' })
  })

  test('can be changed', async ({ account }) => {
    const { id } = await made(account)
    await account.post(`/v1/endpoints/${id}/pause`)
    expect(await account.patch(`/v1/endpoints/${id}`, { segment_max_age_seconds: 7 })).toMatchObject({
      status: 200,
      body: { status: 'paused', segment_max_age_seconds: 7 },
    })
  })
})

describe('DELETE /v1/endpoints/{id}', () => {
  test('204 drains: nodes seal at once, nothing can be attached, and DELETE is idempotent', async ({ account }) => {
    const { id, node } = await received(account)
    const view = await aPublishedView(account)
    expect(await account.delete(`/v1/endpoints/${id}`)).toMatchObject({ status: 204, body: '' })
    expect(await account.delete(`/v1/endpoints/${id}`)).toMatchObject({ status: 204 })
    expect(await account.get(`/v1/endpoints/${id}`)).toMatchObject({ status: 200, body: { status: 'draining' } })
    expect(await account.get('/v1/endpoints?status=draining')).toMatchObject({ body: { total: 1, items: [{ id }] } })
    expect(await stateSeenBy(node, id)).toMatchObject({ desired_state: 'draining', segment_max_age_seconds: 1 })
    expect(await account.post(`/v1/endpoints/${id}/views`, { view_id: view.id })).toMatchObject({
      status: 409,
      body: { error: 'conflict' },
    })
  })

  test('drains if pause and delete run concurrently', async ({ account }) => {
    for (let round = 0; round < 10; round += 1) {
      const { id } = await received(account)
      const [paused, deleted] = await Promise.all([
        account.post(`/v1/endpoints/${id}/pause`),
        account.delete(`/v1/endpoints/${id}`),
      ])
      expect([200, 409]).toContain(paused.status)
      expect(deleted.status).toBe(204)
      expect(await account.get(`/v1/endpoints/${id}`)).toMatchObject({ body: { status: 'draining' } })
    }
  })

  test('is removed once its nodes have delivered everything; its history stays', async () => {
    await using own = await newControl()
    const account = await own.newAccount()
    const destination = await aDestination(account)
    const { id, region } = await made(account, { destination_id: destination.id, segment_max_age_seconds: 1 })
    const view = await aPublishedView(account)
    await account.post(`/v1/endpoints/${id}/views`, { view_id: view.id })
    const node = await TestNode.register(own, region)
    await node.snapshot()
    const outcome = {
      view_id: view.id,
      view_name: 'events',
      view_version: 1,
      processed: 3,
      accepted: 3,
      dropped: 0,
      dlq: 0,
      failed: 0,
    }
    const commit = aCommit(node.id, id, 0, { views: [{ ...outcome, cast_nulls: 0, errors: {}, last_error: null }] })
    await node.call('POST', 'commits', { commits: [commit] })
    expect(await account.delete(`/v1/endpoints/${id}`)).toMatchObject({ status: 204 })

    const lag = aLag(id, { undelivered_segments: 2, blocked_by: 'no bucket' })
    await node.heartbeat({}, { lag: [lag] })
    expect(await account.get(`/v1/endpoints/${id}`)).toMatchObject({
      status: 200,
      body: {
        status: 'draining',
        status_reasons: [
          'the endpoint is being deleted',
          expect.stringContaining('2 segments (2 to deliver; 9 bytes): no bucket'),
        ],
      },
    })
    expect(await account.delete(`/v1/destinations/${destination.id}`)).toMatchObject({ status: 409 })

    await node.heartbeat({}, { lag: [closedLag(id)] })
    await until('the end of the endpoint', async () => (await account.get(`/v1/endpoints/${id}`)).status === 404)
    expect(await account.get(`/v1/endpoints/${id}/commits`)).toMatchObject({ status: 200, body: { items: [{ id: commit.id }] } })
    expect(await account.get(`/v1/endpoints/${id}/views`)).toMatchObject({ status: 404 })
    expect(await account.delete(`/v1/endpoints/${id}`)).toMatchObject({ status: 404 })
    expect(await account.get('/v1/endpoints')).toMatchObject({ body: { total: 0, items: [] } })
    expect(await account.get('/v1/endpoints?status=draining')).toMatchObject({ body: { total: 0 } })
    expect((await node.snapshot()).endpoints).toEqual([])
    expect(await account.get(`/v1/views/${view.id}`)).toMatchObject({ body: { endpoints: [] } })
    expect(await account.get(`/v1/views/${view.id}/metrics`)).toMatchObject({
      body: { endpoints: [{ endpoint_id: id, all_time: { processed: 3 } }] },
    })
    expect(await own.store.db.selectFrom('commits').select('id').execute()).toEqual([{ id: commit.id }])
    expect(await account.delete(`/v1/destinations/${destination.id}`)).toMatchObject({ status: 204 })
  })
})
