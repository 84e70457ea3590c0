/** A node that control refuses for good delivers nothing more: another machine may deliver its log, or nobody wants it. */
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { until } from '../support/until.ts'

test('what is sealed stays until the node is accepted again', async () => {
  const endpoint = anEndpointTo(aDestination('lake'))
  await using node = await DeliveryNode.create(endpoint)
  await node.seal(endpoint.id, '{"n":1}')
  await node.start()
  await until('the commit', () => node.commits.length === 1)
  node.control.fence = 'node_removed'
  await until('the end', () => node.log.some((line) => line.includes('an operator removed this node')))
  await node.seal(endpoint.id, '{"n":2}')
  node.control.fence = undefined
  const done = node.stores.done.length
  const heartbeats = node.control.heartbeats.length
  await node.stop()
  expect(node.stores.done).toHaveLength(done)

  node.control.isUnknown = true
  await node.start()
  await until('refused calls', () => node.control.refused >= 3)
  expect([node.commits.length, node.control.heartbeats.length]).toEqual([1, heartbeats])
  node.control.isUnknown = false
  await until('the second commit', () => node.commits.length === 2)
  expect(node.log.some((line) => line.includes('control accepts this node again'))).toBe(true)
})

test.each(['refuses its commit', 'is away'])(
  'what it delivered while control %s is still on its disk, and it says so',
  async (what) => {
    const endpoint = anEndpointTo(aDestination('lake'))
    await using node = await DeliveryNode.create(endpoint)
    await node.start()
    await until('a heartbeat', () => node.control.heartbeats.length > 0)
    if (what === 'is away') node.control.isAway = true
    else node.control.refusesCommits = true
    await node.seal(endpoint.id, '{"n":1}')
    const { outbox } = node.config.paths
    await until('the commit that waits', () => readdirSync(outbox).length === 1)
    node.control.fence = 'node_removed'
    node.control.isAway = false
    await until('the report', () => node.control.left.length > 0, 20_000)
    const segment = { endpoint_id: endpoint.id, first_seq: 0, last_seq: 0, segments: 1, records: 1 }
    expect(node.control.left[0]?.segments).toMatchObject([segment])
    expect([readdirSync(outbox).length, node.commits.length]).toEqual([1, 0])
  },
)
