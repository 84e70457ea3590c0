/** A node reports the keys in use. */
import { expect, test } from 'vitest'
import { aKey, anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { MqttNode, mqttEndpoint } from '../support/mqtt-node.ts'
import { until } from '../support/until.ts'

const minuteMs = 60_000

/** Lets time pass until the node has reported this many uses. */
function reported({ control }: IngestNode, clock: ManualClock, uses: number): Promise<void> {
  return until(`${uses} uses of keys`, () => {
    clock.advance(2_000)
    return control.usedKeys.length >= uses
  })
}

function send(node: IngestNode, secret: string): Promise<Response> {
  return fetch(`${node.url}/v1/ingest`, {
    method: 'POST',
    headers: { 'x-api-key': secret, 'content-type': 'application/x-ndjson' },
    body: '{"n":1}',
  })
}

test('over HTTP, a key counts if it may send', async () => {
  const clock = new ManualClock()
  const keys = [aKey(), aKey({ secret: secretOf('b'), scopes: ['metrics'] })]
  await using node = await IngestNode.start({ snapshot: aSnapshot({ keys, endpoints: [anEndpoint()] }), clock })
  expect((await send(node, secretOf('b'))).status).toBe(403)
  expect((await send(node, secretOf('a'))).status).toBe(202)
  expect((await send(node, secretOf('a'))).status).toBe(202)
  await reported(node, clock, 1)
  expect(node.control.usedKeys).toEqual([aKey().id])
})

test('over MQTT, a key counts as long as a client is connected with it', async () => {
  const clock = new ManualClock()
  await using mqtt = await MqttNode.start({ clock, endpoint: mqttEndpoint() })
  await mqtt.connect(mqtt.over('tcp', 5))
  await reported(mqtt.node, clock, 1)
  clock.advance(minuteMs)
  await reported(mqtt.node, clock, 2)
  expect(mqtt.node.control.usedKeys.slice(0, 2)).toEqual([aKey().id, aKey().id])
})
