/**
 * Memory and disk are shared: what one account or endpoint uses up, others still have, and nobody learns about the others.
 *
 * Law: in each test a greedy sender takes all that it gets, and the others are accepted as if it were not there.
 */
import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterEach, describe, expect, test } from 'vitest'
import { KiB, MiB } from '#lib/bytes.ts'
import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'
import { accountId, aKey, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { MqttClient } from '../support/mqtt-client.ts'
import { mqttEndpoint } from '../support/mqtt-node.ts'
import { RawClient } from '../support/raw-http.ts'
import { SteeredFiles } from '../support/steered-files.ts'
import { until } from '../support/until.ts'

const [greedy, sibling] = [mqttEndpoint(), mqttEndpoint()]
const victim = mqttEndpoint({ account_id: accountId('b') })
const keys = ['a', 'b'].map((letter) => aKey({ secret: secretOf(letter), account_id: accountId(letter) }))

const clients: MqttClient[] = []
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy()
})

function snapshotOf(...endpoints: readonly SnapshotEndpoint[]): Snapshot {
  return aSnapshot({ keys, endpoints: [...endpoints] })
}

function keyOf({ account_id }: SnapshotEndpoint): string {
  return secretOf(account_id.slice(0, 1))
}

async function post(node: IngestNode, endpoint: SnapshotEndpoint, body: string | Uint8Array = '1\n') {
  const headers = { 'x-api-key': keyOf(endpoint), 'content-type': 'application/x-ndjson' }
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number
    retryAfter: string | undefined
    detail: unknown
  }>()
  request(`${node.url}/v1/ingest?endpoint=${endpoint.id}`, { method: 'POST', headers, agent: false })
    .on('response', async (response) => {
      const { detail } = (await json(response)) as { detail?: string }
      resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], detail })
    })
    .on('error', reject)
    .end(body)
  return await promise
}

/** Opens a connection that announces a body and sends only its beginning. */
async function announce(node: IngestNode, endpoint: SnapshotEndpoint, body: string | Uint8Array): Promise<RawClient> {
  const client = await RawClient.connect(node.url)
  const head = {
    Host: 'ingest.test',
    'X-API-Key': keyOf(endpoint),
    'Content-Type': 'application/x-ndjson',
    'Content-Length': 10 * MiB,
  }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
  await client.send(`POST /v1/ingest?endpoint=${endpoint.id} HTTP/1.1\r\n${lines.join('')}\r\n`)
  void client.send(body)
  return client
}

/** A body of one long line per half MiB. */
function lines(bytes: number): Uint8Array {
  const body = new Uint8Array(bytes).fill(0x31)
  for (let at = 0; at < bytes; at += MiB / 2) body[at] = 0x0a
  return body
}

describe('memory', () => {
  test('is reserved as bytes arrive: slow requests that announce 900 MiB shut out nobody', async () => {
    await using node = await IngestNode.start({ snapshot: snapshotOf(greedy) })
    await using slow = new AsyncDisposableStack()
    for (let count = 0; count < 90; count += 1) slow.use(await announce(node, greedy, '1'))
    await until('all of them to be read', async () => (await node.metric('inlet_ingest_received_bytes_total')) === 90)
    expect(await post(node, greedy)).toMatchObject({ status: 202 })
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBeLessThan(MiB)
  })

  test('of other accounts and of other endpoints is left when an endpoint uses up its share', async () => {
    await using node = await IngestNode.start({
      snapshot: snapshotOf(greedy, sibling, victim),
      environment: { INLET_MAX_IN_FLIGHT_BYTES: '32MiB' },
    })
    await using held = new AsyncDisposableStack()
    for (let count = 0; count < 8; count += 1) held.use(await announce(node, greedy, lines(9 * MiB)))
    // There is room for one of them. No other request may compete with it before it has arrived.
    const refused = async () => (await refusals(node, 'memory_endpoint')) + (await refusals(node, 'memory_account'))
    await until('all but one to be refused', async () => (await refused()) === 7)
    await until('the last one to arrive', async () => (await node.metric('inlet_ingest_in_flight_bytes')) >= 9 * MiB)
    for (const other of [sibling, victim]) expect(await post(node, other, lines(MiB))).toMatchObject({ status: 202 })
    const { detail, retryAfter } = await post(node, greedy, lines(4 * MiB))
    expect([detail, retryAfter]).toEqual([
      'the endpoint uses up its share of the request memory of this node; try again in 1 s',
      '1',
    ])
  })
})

describe('disk', () => {
  const environment = { INLET_DISK_BUDGET_BYTES: '64MiB' }

  async function fill(node: IngestNode, endpoint: SnapshotEndpoint, bytes = 8 * MiB) {
    for (let count = 0; count < 12; count += 1) {
      const answer = await post(node, endpoint, lines(bytes))
      if (answer.status !== 202) return answer
    }
    throw new Error('the disk has no bound')
  }

  test('an endpoint whose data stays on the disk does not shut out others, also after a restart', async () => {
    await using node = await IngestNode.start({ snapshot: snapshotOf(greedy, sibling, victim), environment })
    expect(await fill(node, greedy)).toEqual({
      status: 503,
      retryAfter: '5',
      detail:
        'the endpoint uses up its share of the disk of this node until its data is delivered; see its status; try again in 5 s',
    })
    for (const other of [sibling, victim]) expect(await post(node, other, lines(2 * MiB))).toMatchObject({ status: 202 })
    await node.until('/readyz', ({ status }) => status === 200)
    await node.stop()
    await using again = await IngestNode.start({
      snapshot: snapshotOf(greedy, sibling, victim),
      environment,
      directory: node.directory,
    })
    expect(await post(again, greedy, lines(8 * MiB))).toMatchObject({ status: 503 })
    for (const other of [sibling, victim]) expect(await post(again, other, lines(2 * MiB))).toMatchObject({ status: 202 })
  })

  test('an account that was alone leaves room for one that comes later', async () => {
    await using node = await IngestNode.start({ snapshot: snapshotOf(greedy), environment })
    await fill(node, greedy)
    const { detail } = await fill(node, greedy, MiB)
    expect(detail).toMatch(/^the account uses up its share of the disk/)
    await node.publish({ ...snapshotOf(greedy, victim), epoch: snapshotOf().epoch + 1 })
    expect(await post(node, victim, lines(2 * MiB))).toMatchObject({ status: 202 })
    expect(await post(node, greedy, lines(MiB))).toMatchObject({ status: 503, detail })
    await node.until('/readyz', ({ status }) => status === 200)
  })

  test('the owner is told that the endpoint is blocked; others are not', async () => {
    await using node = await IngestNode.start({ snapshot: snapshotOf(greedy, sibling, victim), environment })
    await fill(node, greedy)
    const blocked = () => node.control.heartbeats.flatMap((beat) => (beat.process === 'ingest' ? beat.blocked : []))
    await until('the endpoint to be reported', () => blocked().length > 0)
    expect(blocked()[0]).toMatchObject({ endpoint_id: greedy.id, reason: expect.stringContaining('share of the disk') })
    expect(new Set(blocked().map(({ endpoint_id }) => endpoint_id))).toEqual(new Set([greedy.id]))
  })

  test('many endpoints bring an account no more than its share', async () => {
    await using node = await IngestNode.start({ snapshot: snapshotOf(greedy, sibling, victim), environment })
    await fill(node, greedy)
    expect(await fill(node, sibling)).toMatchObject({
      detail: expect.stringMatching(/^the (account|endpoint) uses up its share of the disk/),
    })
    expect(await post(node, victim, lines(8 * MiB))).toMatchObject({ status: 202 })
  })

  test('a larger weight is a larger share', async () => {
    const heavy = { ...victim, account_weight: 9 }
    await using node = await IngestNode.start({ snapshot: snapshotOf(greedy, heavy), environment })
    await fill(node, greedy)
    for (let count = 0; count < 3; count += 1) expect(await post(node, heavy, lines(8 * MiB))).toMatchObject({ status: 202 })
  })
})

describe('MQTT', () => {
  const environment = { INLET_MQTT_LISTEN: '127.0.0.1:0', INLET_MAX_IN_FLIGHT_BYTES: '16MiB', INLET_MAX_REQUEST_BYTES: '1MiB' }

  async function connect(node: IngestNode, endpoint: SnapshotEndpoint, clientId: string) {
    const over = { port: node.mqttPort ?? 0, version: 5 } as const
    const { client, connack } = await MqttClient.connect(over, {
      clientId,
      password: Buffer.from(keyOf(endpoint)),
      properties: { userProperties: { endpoint: endpoint.id } },
    })
    clients.push(client)
    return { client, connack }
  }

  /** Connects so many clients of one account and one of another, and then hangs the disk. */
  async function crowd(node: IngestNode, disk: SteeredFiles, count: number) {
    const all: MqttClient[] = []
    for (let index = 0; index < count; index += 1) all.push((await connect(node, greedy, `${index}`)).client)
    const { client: other } = await connect(node, victim, 'victim')
    all[0]?.publish('warm', { messageId: 9_999 })
    await all[0]?.next()
    return { all, other, resume: disk.hang() }
  }

  test('the flood of one account does not stop the reading of others', async () => {
    const disk = new SteeredFiles()
    await using node = await IngestNode.start({ snapshot: snapshotOf(greedy, victim), environment, files: disk.files })
    const { all: flooding, other, resume } = await crowd(node, disk, 8)
    const payload = Buffer.alloc(64 * 1024, 0x61)
    for (const client of flooding) for (let id = 1; id <= 50; id += 1) client.publish(payload, { messageId: id })
    await until('the flood to be refused', async () => (await connect(node, greedy, 'late')).connack.reasonCode === 0x89)
    other.publish('read')
    other.send({ cmd: 'pingreq' })
    expect(await other.next()).toMatchObject({ cmd: 'pingresp' })
    expect((await connect(node, victim, 'new')).connack.reasonCode).toBe(0)
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBeLessThan(8 * MiB)
    resume()
    expect(await other.next()).toMatchObject({ cmd: 'puback' })
    for (const client of flooding) for (let id = 1; id <= 50; id += 1) expect((await client.next()).messageId).toBe(id)
  })

  test('the properties of messages use up the share of their account, and not the log of others', async () => {
    const disk = new SteeredFiles()
    const small = { ...environment, INLET_MAX_IN_FLIGHT_BYTES: '4MiB' }
    await using node = await IngestNode.start({ snapshot: snapshotOf(greedy, victim), environment: small, files: disk.files })
    const { all: flooding, other, resume } = await crowd(node, disk, 8)
    const properties = { userProperties: { long: 'x'.repeat(15 * KiB) } }
    for (const client of flooding) for (let id = 1; id <= 150; id += 1) client.publish('1', { messageId: id, properties })
    await until('the flood to be refused', async () => (await connect(node, greedy, 'late')).connack.reasonCode === 0x89)
    other.publish('read')
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBeGreaterThan(MiB)
    resume()
    expect(await other.next()).toMatchObject({ cmd: 'puback' })
    for (const client of flooding) for (let id = 1; id <= 150; id += 1) expect((await client.next()).messageId).toBe(id)
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
  })

  test('connections that wait hold no more than a share: 0x89 above it, and others go on', async () => {
    const disk = new SteeredFiles()
    const small = { ...environment, INLET_MAX_IN_FLIGHT_BYTES: '4MiB' }
    await using node = await IngestNode.start({ snapshot: snapshotOf(greedy, victim), environment: small, files: disk.files })
    const { all: waiting, other, resume } = await crowd(node, disk, 60)
    for (const client of waiting) client.publish(Buffer.alloc(60 * 1024, 0x61))
    await until('some to be cut off', () => waiting.filter(({ isClosed }) => isClosed).length > 0)
    other.publish('read')
    other.send({ cmd: 'pingreq' })
    expect(await other.next()).toMatchObject({ cmd: 'pingresp' })
    resume()
    expect(await other.next()).toMatchObject({ cmd: 'puback' })
    for (const client of waiting) {
      const packet = await client.next()
      if (packet.cmd === 'disconnect') expect(packet.reasonCode).toBe(0x89)
      else expect(packet).toMatchObject({ cmd: 'puback', messageId: 1 })
    }
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
    expect(waiting.filter(({ isClosed }) => !isClosed).length).toBeGreaterThan(30)
  })
})

async function refusals(node: IngestNode, bound: string): Promise<number> {
  const body = await (await fetch(`${node.url}/metrics`)).text()
  const line = body
    .split('\n')
    .find((text) => text.startsWith('inlet_ingest_refusals_total{') && text.includes(`bound="${bound}"`))
  return Number(line?.split(' ').at(-1) ?? 0)
}
