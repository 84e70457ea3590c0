/** A node that control refuses for good: it takes no data, says why, and does not delay its own end. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemFiles, writeDurably } from '#lib/files.ts'
import { aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { MqttClient } from '../support/mqtt-client.ts'
import { mqttEndpoint } from '../support/mqtt-node.ts'
import { until } from '../support/until.ts'

const endpoint = mqttEndpoint()
const options = {
  snapshot: aSnapshot({ endpoints: [endpoint] }),
  environment: { INLET_MQTT_LISTEN: '127.0.0.1:0', INLET_LEAVE_SECONDS_MIN: '60' },
}

async function post({ url }: IngestNode) {
  const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/json', connection: 'close' }
  const response = await fetch(`${url}/v1/ingest`, { method: 'POST', headers, body: '1' })
  return { status: response.status, body: await response.text(), retryAfter: response.headers.get('retry-after') }
}

test.each([
  ['node_removed', 'an operator removed this node'],
  ['node_revoked', 'an operator revoked the credential'],
  ['node_adopted', 'another machine adopted the log'],
  ['node_released', 'an operator released the id of this node'],
] as const)('%s: 503 for HTTP, the end of MQTT connections, not ready, and an end without a delay', async (fence, reason) => {
  await using node = await IngestNode.start({ ...options })
  const { client } = await MqttClient.connect({ port: node.mqttPort ?? 0, version: 5 })
  expect(await post(node)).toMatchObject({ status: 202 })
  node.control.fence = fence
  expect(await client.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x98 })
  expect(await post(node)).toMatchObject({ status: 503, body: expect.stringContaining(reason), retryAfter: '5' })
  await node.until('/readyz', ({ status }, body) => status === 503 && body.includes(reason))
  expect((await MqttClient.connect({ port: node.mqttPort ?? 0, version: 5 })).connack).toMatchObject({ reasonCode: 0x88 })
  // This stays, whatever control says now: another process may use the log.
  node.control.fence = undefined
  const heartbeats = node.control.heartbeats.length
  await node.leave()
  expect(await node.stored(endpoint.id)).toHaveLength(1)
  expect(node.control.heartbeats).toHaveLength(heartbeats)
})

test('a fence that delivery has stored ends acknowledgements at once, also without control', async () => {
  await using node = await IngestNode.start({ ...options })
  expect(await post(node)).toMatchObject({ status: 202 })
  node.control.isAway = true
  await writeDurably(systemFiles, join(node.directory, 'node', 'fence'), Buffer.from('node_adopted\n'))
  await until('the refusal', async () => (await post(node)).status === 503)
  await node.until('/readyz', ({ status }, text) => status === 503 && text.includes('another machine adopted the log'))
})

test('a start goes by what was stored, until control accepts the node', async () => {
  await using first = await IngestNode.start({ ...options })
  first.control.fence = 'node_removed'
  await first.until('/readyz', ({ status }) => status === 503)
  const path = join(first.directory, 'node', 'fence')
  await until('the file', () =>
    readFile(path, 'utf8').then(
      (text) => text === 'node_removed\n',
      () => false,
    ),
  )
  await first.stop()
  // Nothing listens there.
  await using away = await IngestNode.start({
    ...{ directory: first.directory, snapshot: undefined, environment: options.environment },
    controlUrl: 'http://127.0.0.1:1',
  })
  expect(await post(away)).toMatchObject({ status: 503, body: expect.stringContaining('an operator removed this node') })
  await away.stop()
  await using back = await IngestNode.start({ ...options, directory: first.directory })
  expect(await post(back)).toMatchObject({ status: 202 })
  await expect(readFile(path)).rejects.toThrow('ENOENT')
})

test('a credential that is merely unknown changes nothing: the database may be an older copy', async () => {
  await using node = await IngestNode.start({ ...options })
  node.control.isUnknown = true
  const heartbeats = node.control.refused + 3
  await until('refused calls', () => node.control.refused >= heartbeats)
  expect(await post(node)).toMatchObject({ status: 202 })
})
