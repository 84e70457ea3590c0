/** A node without control: what it knows goes on, and what it cannot know has to wait, but not for ever. */
import { expect, test } from 'vitest'
import { newSigningKey, publicKeys, signAccessToken } from '#auth/access-tokens.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { accountId, aKey, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { MqttClient } from '../support/mqtt-client.ts'
import { mqttEndpoint } from '../support/mqtt-node.ts'
import { until } from '../support/until.ts'

const endpoint = mqttEndpoint()
const issuer = 'http://control.test'
const environment = { INLET_MQTT_LISTEN: '127.0.0.1:0' }

/** The system clock, with a monotonic time that a test can advance. */
class LateClock implements Clock {
  lateMs = 0
  now = systemClock.now
  setTimer = systemClock.setTimer
  timeout = systemClock.timeout
  nextTurn = systemClock.nextTurn
  monotonic = (): number => systemClock.monotonic() + this.lateMs
}

async function post(node: IngestNode, headers: Readonly<Record<string, string>>) {
  const response = await fetch(`${node.url}/v1/ingest`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', connection: 'close', ...headers },
    body: '1\n',
  })
  const { error, detail } = (await response.json()) as { error?: string; detail?: string }
  return { status: response.status, error, detail, retryAfter: response.headers.get('retry-after') }
}

const key = (letter: string) => ({ 'x-api-key': secretOf(letter) })
const later = { status: 503, error: 'unavailable', retryAfter: '5', detail: expect.stringContaining('cannot ask control') }

async function connack(node: IngestNode, letter: string, version: 4 | 5): Promise<number> {
  const packet = { password: Buffer.from(secretOf(letter)), username: 'device' }
  const { client, connack } = await MqttClient.connect({ port: node.mqttPort ?? 0, version }, packet)
  client.destroy()
  return connack?.returnCode ?? connack?.reasonCode
}

test('goes on with what it knows, has the rest wait for five minutes, and refuses it then; it says so', async () => {
  const [known, unknown] = [await newSigningKey(Date.now()), await newSigningKey(Date.now())]
  const request = {
    principal: { account_id: accountId('a'), key_id: aKey().id, scopes: ['ingest'] as const, endpoint_ids: null },
    scope: 'ingest',
  } as const
  const bearer = async (signedBy: typeof known) => ({
    authorization: `Bearer ${await signAccessToken(signedBy, { ...request, issuer, ttlSeconds: 3_600, now: Date.now() })}`,
  })
  const snapshot = aSnapshot({ endpoints: [endpoint], jwks: publicKeys([known]) })
  const clock = new LateClock()
  await using node = await IngestNode.start({ snapshot, environment, clock })
  expect(await post(node, key('b'))).toMatchObject({ status: 401 })
  expect(await post(node, await bearer(unknown))).toMatchObject({ status: 401 })

  node.control.isAway = true
  clock.lateMs += 5_001
  expect(await post(node, key('b'))).toMatchObject(later)
  expect(await post(node, await bearer(unknown))).toMatchObject(later)
  expect([await connack(node, 'b', 4), await connack(node, 'b', 5)]).toEqual([3, 0x88])
  expect(await post(node, { 'x-api-key': 'ing_live_short' })).toMatchObject({ status: 401 })
  await node.until('/readyz', ({ status }, body) => status === 200 && /"notes":\["cut off from control for \d+ s/.test(body))

  clock.lateMs += 300_000
  expect(await post(node, key('b'))).toMatchObject({ status: 401 })
  expect(await post(node, await bearer(unknown))).toMatchObject({ status: 401 })
  expect([await connack(node, 'b', 4), await connack(node, 'b', 5)]).toEqual([4, 0x86])
  expect(await post(node, key('a'))).toMatchObject({ status: 202 })
  expect(await post(node, await bearer(known))).toMatchObject({ status: 202 })
  expect([await connack(node, 'a', 4), await connack(node, 'a', 5)]).toEqual([0, 0])
  expect(await node.metric('inlet_control_contact_age_seconds')).toBeGreaterThan(305)

  node.control.isAway = false
  node.control.publish({ ...snapshot, epoch: 2, keys: [aKey(), aKey({ secret: secretOf('b') })] })
  await until('the new key to work', async () => (await post(node, key('b'))).status === 202)
  await node.until('/readyz', (_, body) => body === '{"status":"ok"}')
  expect(await post(node, key('c'))).toMatchObject({ status: 401 })
})

test('has keys that it does not know wait from its start on, until control has said that it has every change', async () => {
  await using before = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })
  await before.stop()
  await using node = await IngestNode.start({
    snapshot: undefined,
    directory: before.directory,
    controlUrl: 'http://127.0.0.1:1',
  })
  expect(await post(node, key('b'))).toMatchObject(later)
  expect(await post(node, key('a'))).toMatchObject({ status: 202 })
})
