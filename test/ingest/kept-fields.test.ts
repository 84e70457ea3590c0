/** Facts about the sender that an endpoint keeps with its records: the address of the client, whole or masked, and the name of the key. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { anAccessToken } from '../support/access-token.ts'
import { aKey, anEndpoint, aSnapshot, IngestNode, type IngestNodeOptions, secretOf } from '../support/ingest-node.ts'
import { MqttNode, mqttEndpoint } from '../support/mqtt-node.ts'

const key = aKey({ name: 'plant "7" ü' })
const proxied = { INLET_TRUST_PROXY: '127.0.0.0/8, 10.0.0.0/8' }

async function start(kept_fields: string[], more: IngestNodeOptions & { readonly endpoint?: SnapshotEndpoint } = {}) {
  const { endpoint = anEndpoint({ kept_fields }), ...options } = more
  const node = await IngestNode.start({ snapshot: aSnapshot({ keys: [key], endpoints: [endpoint] }), ...options })
  return { node, endpoint, [Symbol.asyncDispose]: () => node[Symbol.asyncDispose]() }
}

async function post(node: IngestNode, headers: Record<string, string> = {}, body = '{"a":1}\n{"a":2}\n', path = '/v1/ingest') {
  const all = { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson', ...headers }
  const response = await fetch(`${node.url}${path}`, { method: 'POST', headers: all, body })
  return { status: response.status, body: await response.json() }
}

async function keptIn({ node, endpoint }: Awaited<ReturnType<typeof start>>) {
  const frames = await node.frames(endpoint.id)
  return frames.map(({ address, key_name }) => ({ ...(address && { address }), ...(key_name && { key_name }) }))
}

/** Whether a file in the data directory of the node has the text. */
async function isOnDisk(node: IngestNode, text: string): Promise<boolean> {
  const entries = await readdir(node.directory, { recursive: true, withFileTypes: true })
  const files = await Promise.all(
    entries.filter((entry) => entry.isFile()).map((entry) => readFile(join(entry.parentPath, entry.name))),
  )
  expect(files.length).toBeGreaterThan(1)
  return files.some((bytes) => bytes.includes(text))
}

describe('HTTP', () => {
  test.each<[string[], object]>([
    [[], {}],
    [['address'], { address: '127.0.0.1' }],
    [['address_masked'], { address: '127.0.0.0' }],
    [['key_name'], { key_name: 'plant "7" ü' }],
    [['key_name', 'address'], { address: '127.0.0.1', key_name: 'plant "7" ü' }],
    // The API refuses both. The one that says less counts.
    [['address', 'address_masked'], { address: '127.0.0.0' }],
    [['a field of a later release'], {}],
  ])('%j keeps %j', async (kept_fields, expected) => {
    await using at = await start(kept_fields)
    // Without a trusted proxy, anybody can say so.
    expect(await post(at.node, { 'x-forwarded-for': '198.51.100.7' })).toMatchObject({
      status: 202,
      body: { accepted_records: 2 },
    })
    expect(await keptIn(at)).toEqual([expected])
  })

  test('behind a proxy that the operator trusts, it is the address of its client', async () => {
    await using at = await start(['address'], { environment: proxied })
    const sent = ['198.51.100.7', '203.0.113.9, 198.51.100.7, 10.1.2.3', '::ffff:198.51.100.7', '2001:DB8:0:0:1::1', 'unknown']
    for (const address of sent) await post(at.node, { 'x-forwarded-for': address })
    await post(at.node)
    const whole = { address: '198.51.100.7' }
    expect(await keptIn(at)).toEqual([whole, whole, whole, { address: '2001:db8::1:0:0:1' }, {}, {}])
  })

  test('a masked address never reaches the disk whole', async () => {
    await using at = await start(['address_masked'], { environment: proxied })
    const addresses = ['198.51.100.77', '::ffff:198.51.100.77', '2001:db8:1:2::77']
    for (const address of addresses) await post(at.node, { 'x-forwarded-for': address, 'idempotency-key': `k${address.length}` })
    const masked = { address: '198.51.100.0' }
    expect(await keptIn(at)).toEqual([masked, masked, { address: '2001:db8:1::' }])
    expect(await isOnDisk(at.node, '198.51.100.0')).toBe(true)
    for (const address of ['198.51.100.77', '2001:db8:1:2']) expect(await isOnDisk(at.node, address)).toBe(false)
  })

  test('every kind of request has them, beside headers and an idempotency key', async () => {
    const endpoint = anEndpoint({ kept_fields: ['key_name'], kept_headers: ['x-event'] })
    await using at = await start([], { endpoint })
    const json = { 'content-type': 'application/json' }
    await post(at.node, { 'x-event': 'push', 'idempotency-key': 'one' })
    await post(at.node, json, '[{"a":1},{"a":2}]')
    await post(at.node, json, '{"batch":[{"type":"track","event":"x"}]}', '/v1/batch')
    const log = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'x' } }] }] }] }
    expect(await post(at.node, json, JSON.stringify(log), '/v1/logs')).toMatchObject({ status: 200 })
    const frames = await at.node.frames(endpoint.id)
    expect(frames.map(({ key_name }) => key_name)).toEqual(Array(4).fill('plant "7" ü'))
    expect(frames[0]).toMatchObject({ headers: { 'x-event': 'push' }, idempotency_key: 'one' })
  })

  test('a request is repeated with its idempotency key from another address', async () => {
    await using at = await start(['address', 'key_name'], { environment: proxied })
    const once = { 'idempotency-key': 'once' }
    const first = await post(at.node, { ...once, 'x-forwarded-for': '198.51.100.7' })
    const again = await post(at.node, { ...once, 'x-forwarded-for': '203.0.113.1' })
    expect([first.status, again.status]).toEqual([202, 202])
    expect(again.body).toEqual(first.body)
    expect(await keptIn(at)).toEqual([{ address: '198.51.100.7', key_name: 'plant "7" ü' }])
  })

  test('a token has the name of its key, also while it outlives the key', async () => {
    const { token, issued } = await anAccessToken({ account_id: key.account_id, key_id: key.id })
    const endpoint = anEndpoint({ kept_fields: ['key_name'] })
    const snapshot = aSnapshot({ keys: [key], endpoints: [endpoint], ...issued })
    await using at = await start([], { endpoint, snapshot })
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson' }
    const send = async () => {
      return (await fetch(`${at.node.url}/v1/ingest`, { method: 'POST', headers, body: '{}' })).status
    }
    expect(await send()).toBe(202)
    const revoked = { id: key.id, tokens_until: new Date(Date.now() + 60_000).toISOString(), name: key.name }
    await at.node.publish({ ...snapshot, epoch: 2, keys: [], revoked_keys: [revoked] })
    expect(await send()).toBe(202)
    expect(await keptIn(at)).toEqual([{ key_name: 'plant "7" ü' }, { key_name: 'plant "7" ü' }])
  })
})

describe('MQTT', () => {
  const startMqtt = (kept_fields: string[], environment: Record<string, string> = {}) => {
    const endpoint = mqttEndpoint({ kept_fields })
    return MqttNode.start({ endpoint, environment, snapshot: aSnapshot({ keys: [key], endpoints: [endpoint] }) })
  }
  const tls = join(import.meta.dirname, '../fixtures/tls')
  const secure = { INLET_TLS_CERTIFICATE_FILE: join(tls, 'first.crt'), INLET_TLS_KEY_FILE: join(tls, 'first.key') }

  test.each(['tcp', 'tls', 'ws', 'wss'] as const)('over %s, messages and the will have them', async (transport) => {
    const isSecure = transport === 'tls' || transport === 'wss'
    await using mqtt = await startMqtt(['address', 'key_name'], isSecure ? secure : {})
    const over = { ...mqtt.over(transport.startsWith('ws') ? 'ws' : 'tcp', 5), transport }
    const client = await mqtt.connect(over, {
      will: { topic: 'gone', payload: Buffer.from('w'), qos: 0, retain: false },
    })
    for (const messageId of [1, 2]) {
      client.publish('{}', { messageId, properties: messageId === 1 ? {} : { contentType: 'a/b' } })
      expect(await client.next()).toMatchObject({ cmd: 'puback', messageId })
    }
    client.destroy()
    const frames = await mqtt.node.frames(mqtt.endpoint.id)
    expect(frames.map(({ topic, address, key_name, content_type }) => [topic, address, key_name, content_type])).toEqual([
      ['plant/7', '127.0.0.1', 'plant "7" ü', undefined],
      ['plant/7', '127.0.0.1', 'plant "7" ü', 'a/b'],
      ['gone', '127.0.0.1', 'plant "7" ü', undefined],
    ])
  })

  test('a WebSocket behind a proxy that the operator trusts has the address of its client; TCP has that of the proxy', async () => {
    await using mqtt = await startMqtt(['address_masked'], proxied)
    const headers = { 'x-forwarded-for': '2001:db8:1:2::77' }
    for (const over of [{ ...mqtt.over('ws'), headers }, mqtt.over('tcp')]) {
      const client = await mqtt.connect(over)
      client.publish('{}')
      await client.next()
    }
    const frames = await mqtt.node.frames(mqtt.endpoint.id)
    expect(frames.map(({ address }) => address)).toEqual(['2001:db8:1::', '127.0.0.0'])
    expect(await isOnDisk(mqtt.node, '2001:db8:1:2')).toBe(false)
  })

  test('an open connection follows each change of the endpoint', async () => {
    await using mqtt = await startMqtt([])
    const { node, endpoint } = mqtt
    const client = await mqtt.connect(mqtt.over('tcp', 5))
    const settings = [[], ['address'], ['address_masked', 'key_name'], []]
    for (const [index, kept_fields] of settings.entries()) {
      if (index > 0) await node.publish(aSnapshot({ epoch: index + 1, keys: [key], endpoints: [{ ...endpoint, kept_fields }] }))
      client.publish('{}', { messageId: index + 1 })
      expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: index + 1 })
    }
    const frames = await node.frames(endpoint.id)
    expect(frames.map(({ address, key_name }) => [address, key_name])).toEqual([
      [undefined, undefined],
      ['127.0.0.1', undefined],
      ['127.0.0.0', 'plant "7" ü'],
      [undefined, undefined],
    ])
  })
})
