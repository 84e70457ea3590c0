/** The operator removes a node: what that abandons, what still works afterwards, and how the node comes back. */
import { describe, expect, test } from 'vitest'
import { newNodeSecret } from '#auth/node-credential.ts'
import { newId } from '#model/id.ts'
import { clientOf, operatorToken, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()
const operator = () => clientOf(control().call, operatorToken)
const remove = (id: string, query = '') => operator().delete(`/v1/nodes/${id}${query}`)
const nodeIds = async () => (await operator().get('/v1/nodes?limit=200')).body.items.map(({ id }: { id: string }) => id)
const silence = () => control().clock.advance(16_000)

async function inhabited() {
  const account = await control().newAccount()
  const held = await anEndpointWithNode(control(), account, { name: 'checkout' })
  await held.node.snapshot()
  return { account, ...held }
}

describe('DELETE /v1/nodes/{id}', () => {
  test('404, 422', async () => {
    expect(await remove(newId())).toMatchObject({ status: 404, body: { detail: 'there is no such node' } })
    expect(await remove(newId(), '?force=perhaps')).toMatchObject({ status: 422 })
  })

  test('409 for a node that runs, 200 with force: it is refused at once, and may join again', async () => {
    const { node } = await inhabited()
    await node.heartbeat()
    const { status, body } = await remove(node.id)
    expect([status, body.detail]).toEqual([
      409,
      expect.stringMatching(/^the node runs: its last heartbeat was at .*Z; stop it first; .* repeat this after .*Z$/),
    ])
    expect(await remove(node.id, '?force=true')).toMatchObject({
      status: 200,
      body: { endpoints: 0, logs: [], note: expect.stringContaining('if it has a join token or the join secret, it joins') },
    })
    expect(await nodeIds()).not.toContain(node.id)
    expect(await node.askSnapshot()).toMatchObject({ status: 401, body: { fence: 'node_removed' } })
    expect((await control().call('GET', '/metrics')).body).toMatch(
      /^inlet_node_calls_refused_total\{[^}]*node_removed[^}]*\} [1-9]/m,
    )
    expect(await node.join()).toMatchObject({ status: 200, body: { joined: true } })
    await node.heartbeat()
  })

  test('409 says what would be abandoned, 200 with force lists it by endpoint', async () => {
    const { account, endpoint, region, node } = await inhabited()
    const unknown = newId()
    const lag = [
      aLag(endpoint.id, { open_segments: 1, parked_segments: 1, undelivered_bytes: 100 }),
      aLag(unknown, { undelivered_bytes: 900 }),
      aLag(newId(), { undelivered_segments: 0, undelivered_bytes: 0 }),
    ]
    await node.heartbeat({}, { lag })
    silence()
    const { status, body } = await remove(node.id)
    expect([status, body.detail]).toEqual([
      409,
      expect.stringMatching(/^the removal would abandon 4 segments \(1000 bytes\) of 2 endpoints, .*--adopt DIR\)$/),
    ])
    expect(await nodeIds()).toContain(node.id)
    const removed = await remove(node.id, '?force=true')
    expect(removed).toMatchObject({
      status: 200,
      body: {
        ...{ node_id: node.id, region, reported_at: expect.stringMatching(/Z$/), endpoints: 2 },
        segments: { open_segments: 1, sealed_segments: 2, parked_segments: 1, quarantined_segments: 0, bytes: 1000 },
        logs: [
          { endpoint_id: unknown, owner: 'unknown', bytes: 900 },
          { endpoint_id: endpoint.id, endpoint_name: 'checkout', account_id: account.account_id, owner: 'active', bytes: 100 },
        ],
        note: expect.stringMatching(
          /^the node is silent since .*Z: what it acknowledged after .*Z is not counted, and lost with its disk$/,
        ),
      },
    })
    expect((await account.get(`/v1/endpoints/${endpoint.id}`)).body.lag).toMatchObject({ open_segments: 0, undelivered_bytes: 0 })
    const { items } = (await operator().get('/v1/installation/audit-events?operation=removeNode&limit=2')).body
    expect(items).toMatchObject([{ resource_id: node.id, status: 200 }, { error: 'conflict' }])
  })

  test('409 for a node whose delivery never reported, 200 for one that never sent anything', async () => {
    const { node } = await inhabited()
    const beat = {
      process: 'ingest',
      node_id: node.id,
      applied_epoch: 1,
      healthy: true,
      reasons: [],
      disk_full: false,
      blocked: [],
    }
    expect(await node.call('POST', 'heartbeat', beat)).toMatchObject({ status: 200 })
    silence()
    expect(await remove(node.id)).toMatchObject({ status: 409, body: { detail: expect.stringContaining('never reported') } })
    const { node: silent } = await inhabited()
    expect(await remove(silent.id)).toMatchObject({ status: 200, body: { note: 'the node has never sent a heartbeat' } })
  })

  test('200 ends the drains that waited for the node', async () => {
    const { account, endpoint, node } = await inhabited()
    await node.heartbeat()
    await account.delete(`/v1/endpoints/${endpoint.id}`)
    silence()
    const { body } = await account.get(`/v1/endpoints/${endpoint.id}`)
    expect(body.status_reasons.join()).toContain(node.id)
    expect(await remove(node.id)).toMatchObject({ status: 200 })
    await until('the endpoint to be gone', async () => (await account.get(`/v1/endpoints/${endpoint.id}`)).status === 404)
  })
})

describe('a removed node', () => {
  test('keeps its commits, and continues its log under its id once it joined again', async () => {
    const { account, endpoint, node } = await inhabited()
    const commits = [aCommit(node.id, endpoint.id, 7)]
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200, body: { new: 1 } })
    expect(await remove(node.id)).toMatchObject({ status: 200 })
    expect((await account.get(`/v1/endpoints/${endpoint.id}/commits`)).body.items).toMatchObject([{ seq: 7 }])
    await node.join()
    expect(await node.call('GET', `committed-seqs?node_id=${node.id}`)).toMatchObject({
      body: { seqs: { [endpoint.id]: 1_007 } },
    })
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200, body: { new: 0 } })
  })

  test('keeps its id: another one gets it only after the operator released it', async () => {
    const { node } = await inhabited()
    await remove(node.id)
    const thief = { secret: newNodeSecret() }
    expect(await node.join(thief)).toMatchObject({ body: { joined: false, reason: 'taken' } })
    expect(await node.join({ ...thief, previous_secret: newNodeSecret() })).toMatchObject({ body: { reason: 'taken' } })
    expect(await operator().delete(`/v1/nodes/${node.id}/credential`)).toMatchObject({ status: 204 })
    expect(await operator().delete(`/v1/nodes/${node.id}/credential?release=true`)).toMatchObject({ status: 204 })
    expect(await node.join(thief)).toMatchObject({ body: { joined: true } })
    expect(await node.join()).toMatchObject({ body: { reason: 'taken' } })
  })

  test('may join with a new secret if it proves that it had the one before', async () => {
    const { node } = await inhabited()
    await remove(node.id)
    expect(await node.join({ secret: newNodeSecret(), previous_secret: node.secret })).toMatchObject({ body: { joined: true } })
    expect(await remove(node.id)).toMatchObject({ status: 200 })
  })
})
