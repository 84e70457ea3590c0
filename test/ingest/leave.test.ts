/** A node that is stopped on purpose: clients that follow DNS, or a load balancer, are not refused. */
import { expect, test } from 'vitest'
import { type Clock, systemClock } from '#lib/clock.ts'
import { aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { MqttClient } from '../support/mqtt-client.ts'
import { mqttEndpoint } from '../support/mqtt-node.ts'
import { RawClient } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const endpoint = mqttEndpoint()
const request = `POST /v1/ingest HTTP/1.1\r\nHost: a\r\nX-API-Key: ${secretOf('a')}\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n1`
/** Heartbeats, and the time in which connections end, take no time. */
const hurriedClock: Clock = {
  ...systemClock,
  setTimer: (callback, delayMs) => systemClock.setTimer(callback, Math.min(delayMs, 20)),
}

test('serves until no client finds it any more, leads those that stayed elsewhere, and stores what they sent', async () => {
  await using node = await IngestNode.start({
    snapshot: aSnapshot({ endpoints: [endpoint] }),
    environment: { INLET_MQTT_LISTEN: '127.0.0.1:0' },
    clock: hurriedClock,
  })
  const { control } = node
  control.mayStopInSeconds = null
  const isToldToStay = control.heartbeats.length + 2
  await until('a heartbeat', () => control.heartbeats.length >= isToldToStay)
  await using http = await RawClient.connect(node.url)
  const { client: mqtt } = await MqttClient.connect({ port: node.mqttPort ?? 0, version: 5 })
  let hasLeft = false
  const left = node.leave().then(() => (hasLeft = true))

  await until('control to know', () => control.heartbeats.some((beat) => beat.process === 'ingest' && beat.leaving === true))
  await node.until('/readyz', ({ status }, body) => status === 503 && body.includes('shutting down'))
  await http.send(request)
  const served = await http.answer()
  expect(served).toMatchObject({ status: 202 })
  expect(served.headers['connection']).not.toBe('close')
  expect((await MqttClient.connect({ port: node.mqttPort ?? 0 }, { clientId: 'late' })).connack).toMatchObject({ returnCode: 0 })
  expect(hasLeft).toBe(false)

  control.mayStopInSeconds = 0
  expect(await mqtt.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8b })
  await http.send(request)
  expect(await http.answer()).toMatchObject({ status: 202, headers: { connection: 'close' } })
  await left
  expect(await node.stored(endpoint.id)).toHaveLength(2)
})

test('stops at once where no DNS is managed', async () => {
  await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })
  const { client } = await MqttClient.connect({ port: Number(new URL(node.url).port), transport: 'ws', version: 5 })
  await node.leave()
  const stopped = node.stop()
  expect(await client.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8b })
  await stopped
})
