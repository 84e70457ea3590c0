/**
 * Connections are shared: before the first authenticated request by client address and for a short time, after it by account.
 *
 * Law: clients that do not authenticate, and accounts that open all connections that they can, shut out nobody else.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { requestLimits } from '#model/limits.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { accountId, aKey, aSnapshot, IngestNode, type IngestNodeOptions, secretOf } from '../support/ingest-node.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { MqttClient } from '../support/mqtt-client.ts'
import { mqttEndpoint } from '../support/mqtt-node.ts'
import { RawClient } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const [greedy, victim] = [mqttEndpoint(), mqttEndpoint({ account_id: accountId('b') })]
const keys = ['a', 'b'].map((letter) => aKey({ secret: secretOf(letter), account_id: accountId(letter) }))
const fixture = (name: string) => join(import.meta.dirname, '../fixtures/tls', name)
const tls = { INLET_TLS_CERTIFICATE_FILE: fixture('first.crt'), INLET_TLS_KEY_FILE: fixture('first.key') }

function start({ environment = {}, ...options }: IngestNodeOptions = {}): Promise<IngestNode> {
  const snapshot = aSnapshot({ keys, endpoints: [greedy, victim] })
  return IngestNode.start({ snapshot, environment: { INLET_MQTT_LISTEN: '127.0.0.1:0', ...environment }, ...options })
}

const keyOf = ({ account_id }: SnapshotEndpoint) => secretOf(account_id.slice(0, 1))
const portOf = (node: IngestNode) => Number(new URL(node.url).port)

function requestOf(endpoint: SnapshotEndpoint, key = keyOf(endpoint)): string {
  const head = { Host: 'ingest.test', 'X-API-Key': key, 'Content-Type': 'application/x-ndjson', 'Content-Length': 2 }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST /v1/ingest?endpoint=${endpoint.id} HTTP/1.1\r\n${lines.join('')}\r\n1\n`
}

async function client(node: IngestNode): Promise<RawClient> {
  const raw = await RawClient.connect(node.url)
  onTestFinished(() => raw[Symbol.asyncDispose]())
  return raw
}

/** Connects an MQTT client, and returns its CONNACK; undefined if the connection was closed. */
async function mqtt(node: IngestNode, endpoint: SnapshotEndpoint, clientId: string, transport: 'tcp' | 'ws' = 'tcp') {
  const port = transport === 'tcp' ? (node.mqttPort ?? 0) : portOf(node)
  const opened = await MqttClient.connect(
    { port, transport, version: 5 },
    { clientId, password: Buffer.from(keyOf(endpoint)), properties: { userProperties: { endpoint: endpoint.id } } },
  )
  onTestFinished(() => opened.client.destroy())
  return opened
}

describe('a connection without an authenticated request', () => {
  /** Advances the clock second by second, and lets the node read in between. */
  async function pass(clock: ManualClock, seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate)
      clock.advance(1_000)
    }
  }

  test('is closed after 5 s; one that has authenticated stays', async () => {
    const clock = new ManualClock()
    await using node = await start({ clock })
    const [silent, halfSent, refused, accepted] = [await client(node), await client(node), await client(node), await client(node)]
    const silentMqtt = await MqttClient.open({ port: node.mqttPort ?? 0 })
    await halfSent.send('POST /v1/ingest HTTP/1.1\r\nHost: x\r\nX-Slow')
    await refused.send(requestOf(greedy, secretOf('f')))
    const answer = await refused.answer()
    expect([answer.status, answer.headers['keep-alive']]).toEqual([401, `timeout=${requestLimits.unauthenticatedMs / 1000}`])
    await accepted.send(requestOf(greedy))
    expect((await accepted.answer()).headers['keep-alive']).toBe(`timeout=${requestLimits.idleConnectionMs / 1000}`)
    expect(await node.metric('inlet_ingest_unauthenticated_connections')).toBe(5)
    await pass(clock, 5)
    expect(await node.metric('inlet_ingest_unauthenticated_connections')).toBe(5)
    await pass(clock, 2)
    expect([await silent.closed, silent.unread]).toEqual(['end', ''])
    expect(await halfSent.answer()).toMatchObject({ status: 408 })
    expect([await refused.closed, await silentMqtt.next()]).toEqual(['end', undefined])
    await accepted.send(requestOf(greedy))
    expect((await accepted.answer()).status).toBe(202)
  })

  test('is closed although it sends: only a valid key extends its time', async () => {
    const clock = new ManualClock()
    await using node = await start({ clock })
    const slow = await client(node)
    await slow.send(requestOf(greedy, secretOf('f')).replace('Content-Length: 2', 'Content-Length: 1000'))
    expect(await slow.answer()).toMatchObject({ status: 401 })
    for (let second = 0; second < 11; second += 1) {
      await slow.send('1')
      await pass(clock, 1)
    }
    await slow.closed
    await until('its place to be free', async () => (await node.metric('inlet_ingest_unauthenticated_connections')) === 1)
  })

  test.each([
    ['HTTP', {}, portOf],
    ['HTTPS, in the handshake', tls, portOf],
    ['MQTT', {}, (node: IngestNode) => node.mqttPort ?? 0],
    ['MQTT with TLS, in the handshake', tls, (node: IngestNode) => node.mqttPort ?? 0],
  ] as const)('counts against the bound of its address: %s', async (_, more, port) => {
    await using node = await start({ environment: { INLET_MAX_UNAUTHENTICATED_PER_ADDRESS: '4', ...more } })
    const sockets = Array.from({ length: 6 }, () => connect(port(node), '127.0.0.1').resume())
    for (const socket of sockets) socket.on('error', () => undefined)
    await until('those above it to be closed', () => sockets.filter(({ closed }) => closed).length === 2)
    for (const socket of sockets) socket.destroy()
    // The request for the metrics needs a place, too.
    const dropped = () => node.metric('inlet_ingest_dropped_connections_total').catch(() => 0)
    await until('the metrics to show them', async () => (await dropped()) >= 2)
  })

  test('does not count against it any more once it has authenticated', async () => {
    await using node = await start({ environment: { INLET_MAX_UNAUTHENTICATED_PER_ADDRESS: '2' } })
    for (let count = 0; count < 6; count += 1) {
      const raw = await client(node)
      await raw.send(requestOf(greedy))
      expect((await raw.answer()).status).toBe(202)
      for (const transport of ['tcp', 'ws'] as const)
        expect((await mqtt(node, greedy, `${transport}${count}`, transport)).connack.reasonCode).toBe(0)
    }
  })

  test('over TLS is counted once, and no longer when it is closed', async () => {
    await using node = await start({ environment: tls })
    const open = (port: number) =>
      new Promise<Socket>((resolve) => {
        const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => resolve(socket))
        onTestFinished(() => {
          socket.destroy()
        })
      })
    const sockets = [await open(portOf(node)), await open(node.mqttPort ?? 0)]
    // The request for the metrics has a connection, too.
    await until('both to be counted', async () => (await node.metric('inlet_ingest_unauthenticated_connections')) === 3)
    sockets[0]?.write(requestOf(greedy))
    await once(sockets[0] ?? connect(0), 'data')
    expect(await node.metric('inlet_ingest_unauthenticated_connections')).toBe(2)
    for (const socket of sockets) socket.destroy()
    await until('none to be left', async () => (await node.metric('inlet_ingest_connections')) === 1)
  })
})

describe('the connections of an account', () => {
  test('have a share: above it they are refused, and those of others are not', async () => {
    await using node = await start({ environment: { INLET_MAX_CONNECTIONS: '12' } })
    const codes: number[] = []
    for (let index = 0; index < 8; index += 1) codes.push((await mqtt(node, greedy, `${index}`)).connack.reasonCode)
    expect(codes).toEqual([0, 0, 0, 0, 0, 0, 0x97, 0x97])
    const refused = await client(node)
    await refused.send(requestOf(greedy))
    expect(await refused.answer()).toMatchObject({
      status: 503,
      headers: { 'retry-after': '5', connection: 'close' },
      json: { detail: expect.stringMatching(/^the account uses up its share of the connections/) },
    })
    expect((await mqtt(node, victim, 'victim')).connack.reasonCode).toBe(0)
    const accepted = await client(node)
    await accepted.send(requestOf(victim))
    expect(await accepted.answer()).toMatchObject({ status: 202 })
    // A client can always take over its own connection, and no connection is counted twice for that.
    for (const clientId of ['0', '0', '1']) expect((await mqtt(node, greedy, clientId)).connack.reasonCode).toBe(0)
    expect((await mqtt(node, greedy, 'another')).connack.reasonCode).toBe(0x97)
  })

  test('behind a proxy count for the account that used them last', async () => {
    await using node = await start({ environment: { INLET_MAX_CONNECTIONS: '4' } })
    const shared = await client(node)
    for (const endpoint of [greedy, victim, greedy, victim, greedy]) {
      await shared.send(requestOf(endpoint))
      expect(await shared.answer()).toMatchObject({ status: 202 })
    }
    expect((await mqtt(node, victim, 'victim')).connack.reasonCode).toBe(0)
  })
})
