/** A node with a lease on credentials: cut off from control, it refuses all of them in time, over HTTP and MQTT. */
import { expect, test } from 'vitest'
import { aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { MqttClient } from '../support/mqtt-client.ts'
import { mqttEndpoint } from '../support/mqtt-node.ts'
import { until } from '../support/until.ts'

const endpoint = mqttEndpoint()
const snapshot = aSnapshot({ endpoints: [endpoint] })
const environment = { INLET_MQTT_LISTEN: '127.0.0.1:0', INLET_CREDENTIAL_LEASE: '5s' }

async function post({ url }: IngestNode) {
  const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/json', connection: 'close' }
  const response = await fetch(`${url}/v1/ingest`, { method: 'POST', headers, body: '1' })
  return { status: response.status, body: await response.text(), retryAfter: response.headers.get('retry-after') }
}

const connect = (node: IngestNode) => MqttClient.connect({ port: node.mqttPort ?? 0, version: 5 })
const isAccepted = (node: IngestNode) => async () => (await post(node)).status === 202

test('503 with the reason and Retry-After, the end of MQTT connections, and not ready, until control is back', async () => {
  await using node = await IngestNode.start({ snapshot, environment })
  await until('the lease', isAccepted(node))
  const { client } = await connect(node)
  node.control.isAway = true
  const cutOffAt = performance.now()
  let acceptedAt = cutOffAt
  await until('the end of the lease', async () => {
    const at = performance.now()
    const { status } = await post(node)
    if (status === 202) acceptedAt = at
    return status === 503
  })
  expect(acceptedAt - cutOffAt).toBeLessThan(5_000)
  expect(await post(node)).toMatchObject({
    ...{ status: 503, retryAfter: '5' },
    body: expect.stringMatching(
      /control has not confirmed the credentials of this node for \d s, longer than the lease of 5 s on them/,
    ),
  })
  expect(await client.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x98 })
  expect((await connect(node)).connack).toMatchObject({ reasonCode: 0x88 })
  await node.until('/readyz', ({ status }, body) => status === 503 && body.includes('longer than the lease of 5 s on them'))
  node.control.isAway = false
  await until('the next lease', isAccepted(node))
  expect((await connect(node)).connack).toMatchObject({ reasonCode: 0 })
})

test('a start without control accepts nothing, although it has a stored configuration', async () => {
  await using first = await IngestNode.start({ snapshot, environment })
  await until('the lease', isAccepted(first))
  await first.stop()
  await using away = await IngestNode.start({
    ...{ directory: first.directory, snapshot: undefined, environment },
    controlUrl: 'http://127.0.0.1:1',
  })
  expect(await post(away)).toMatchObject({ status: 503, body: expect.stringContaining('since its start') })
})
