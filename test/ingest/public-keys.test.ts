/** Public keys, which web pages hold: where they may be, and from where they may send. */
import { describe, expect, test } from 'vitest'
import { aKey, anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { MqttClient } from '../support/mqtt-client.ts'
import { mqttEndpoint } from '../support/mqtt-node.ts'

const page = 'https://app.example.com'
const endpoint = anEndpoint()
const publicKey = aKey({ secret: secretOf('p'), endpoint_ids: [endpoint.id], origins: [page] })
const snapshot = aSnapshot({ endpoints: [endpoint, anEndpoint()], keys: [aKey(), publicKey] })
const environment = { INLET_PUBLIC_KEYS: 'true' }

type Call = { readonly query?: string; readonly headers?: Record<string, string>; readonly body?: string }

async function send(node: IngestNode, { query = '', headers = {}, body = '{"a":1}' }: Call) {
  const all = { 'content-type': 'text/plain;charset=UTF-8', ...headers }
  const response = await fetch(`${node.url}/v1/ingest${query}`, { method: 'POST', headers: all, body })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const inQuery = `?key=${secretOf('p')}`

describe('a public key', () => {
  test('in the query of a beacon stores its records at the only endpoint of the key', async () => {
    await using node = await IngestNode.start({ snapshot, environment })
    const headers = { origin: page }
    expect(await send(node, { query: inQuery, headers })).toMatchObject({ status: 202, body: { accepted_records: 1 } })
    const lines = { query: `${inQuery}&endpoint=${endpoint.id}`, headers, body: '{"a":2}\n{"a":3}\n' }
    expect(await send(node, lines)).toMatchObject({ status: 202, body: { accepted_records: 2 } })
    expect((await node.stored(endpoint.id)).map(({ recordCount }) => recordCount)).toEqual([1, 2])
  })

  test('is refused from another page, and without an Origin, also in a header', async () => {
    await using node = await IngestNode.start({ snapshot, environment })
    const inHeader = { 'x-api-key': secretOf('p'), 'content-type': 'application/json' }
    const bearer = { authorization: `Bearer ${secretOf('p')}`, 'content-type': 'application/json' }
    for (const call of [{ query: inQuery }, { headers: inHeader }, { headers: bearer }]) {
      const foreign = { ...call, headers: { ...('headers' in call ? call.headers : {}), origin: 'https://evil.example' } }
      const own = { ...call, headers: { ...foreign.headers, origin: page } }
      expect(await send(node, call)).toMatchObject({ status: 403, body: { detail: expect.stringContaining('no Origin') } })
      expect(await send(node, foreign)).toMatchObject({ status: 403, body: { detail: expect.stringContaining('evil.example') } })
      expect(await send(node, own)).toMatchObject({ status: 202 })
    }
  })

  test('does not make text/plain a type of others, and sends to no other endpoint', async () => {
    await using node = await IngestNode.start({ snapshot, environment })
    const headers = { origin: page }
    expect(await send(node, { headers: { ...headers, 'x-api-key': secretOf('p') } })).toMatchObject({ status: 415 })
    const other = snapshot.endpoints.find(({ id }) => id !== endpoint.id)
    expect(await send(node, { query: `${inQuery}&endpoint=${other?.id}`, headers })).toMatchObject({ status: 403 })
    expect(await send(node, { query: `${inQuery}&key=x`, headers })).toMatchObject({ status: 400 })
  })

  test('is refused where the operator does not allow public keys', async () => {
    await using node = await IngestNode.start({ snapshot })
    const headers = { origin: page }
    const refused = { status: 403, body: { detail: expect.stringContaining('INLET_PUBLIC_KEYS') } }
    expect(await send(node, { query: inQuery, headers })).toMatchObject(refused)
    const inHeader = { 'x-api-key': secretOf('p'), 'content-type': 'application/json' }
    expect(await send(node, { headers: { ...headers, ...inHeader } })).toMatchObject(refused)
  })

  test('opens MQTT over WebSocket from its pages only, and never MQTT over TCP', async () => {
    const mqtt = mqttEndpoint()
    const key = { ...publicKey, endpoint_ids: [mqtt.id] }
    await using node = await IngestNode.start({
      snapshot: aSnapshot({ endpoints: [mqtt], keys: [key] }),
      environment: { ...environment, INLET_MQTT_LISTEN: '127.0.0.1:0' },
    })
    const packet = { username: 'page', password: Buffer.from(secretOf('p')) }
    const { client, connack } = await MqttClient.connect({ port: node.mqttPort ?? 0, version: 5 }, packet)
    client.destroy()
    expect(connack?.reasonCode).toBe(0x87)
    for (const [origin, code] of [
      [page, 0],
      ['https://evil.example', 0x87],
    ] as const) {
      const over = { port: Number(new URL(node.url).port), transport: 'ws', version: 5, headers: { origin } } as const
      const { client: fromPage, connack: answer } = await MqttClient.connect(over, packet)
      fromPage.destroy()
      expect(answer?.reasonCode, origin).toBe(code)
    }
  })
})

test('a key that is not public is refused in the query, and is in no response', async () => {
  await using node = await IngestNode.start({ snapshot, environment })
  const refused = await send(node, { query: `?key=${secretOf('a')}`, headers: { origin: page } })
  expect(refused).toMatchObject({
    status: 403,
    body: { detail: expect.stringContaining('only a public key may be in the query') },
  })
  expect(JSON.stringify(refused.body)).not.toContain(secretOf('a'))
  expect(await send(node, { query: `?key=${secretOf('b')}`, headers: { origin: page } })).toMatchObject({ status: 401 })
})

test('a key for one of several endpoints names it over HTTP, and for MQTT 3.1.1 over TCP', async () => {
  const [own, other] = [mqttEndpoint(), mqttEndpoint()]
  const keys = [aKey({ endpoint_ids: [own.id] }), aKey({ secret: secretOf('b') })]
  await using node = await IngestNode.start({
    snapshot: aSnapshot({ endpoints: [own, other], keys }),
    environment: { INLET_MQTT_LISTEN: '127.0.0.1:0' },
  })
  const json = { 'content-type': 'application/json' }
  expect(await send(node, { headers: { ...json, 'x-api-key': secretOf('a') } })).toMatchObject({ status: 202 })
  expect(await send(node, { headers: { ...json, 'x-api-key': secretOf('b') } })).toMatchObject({ status: 422 })
  for (const [letter, code] of [
    ['a', 0],
    ['b', 5],
  ] as const) {
    const packet = { username: 'device', password: Buffer.from(secretOf(letter)) }
    const { client, connack } = await MqttClient.connect({ port: node.mqttPort ?? 0, version: 4 }, packet)
    client.destroy()
    expect(connack?.returnCode).toBe(code)
  }
  expect(await node.stored(own.id)).toHaveLength(1)
})
