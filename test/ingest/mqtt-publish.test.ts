/** PUBLISH and PUBACK, §3.3 and §3.4 of MQTT 3.1.1 and 5: acknowledged messages are on disk. */
import { afterEach, describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { aSnapshot, IngestNode } from '../support/ingest-node.ts'
import { MqttClient, type Version } from '../support/mqtt-client.ts'
import { expectEnd, mqttEndpoint, mqttSettings } from '../support/mqtt-node.ts'
import { SteeredFiles } from '../support/steered-files.ts'
import { until } from '../support/until.ts'

const endpoint = mqttEndpoint()
const versions = [4, 5] as const

const clients: MqttClient[] = []
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy()
})

type Node = {
  readonly files?: SteeredFiles
  readonly endpoint?: SnapshotEndpoint
  readonly environment?: Record<string, string>
}

function start(more: Node = {}): Promise<IngestNode> {
  return IngestNode.start({
    snapshot: aSnapshot({ endpoints: [more.endpoint ?? endpoint] }),
    environment: { INLET_MQTT_LISTEN: '127.0.0.1:0', ...more.environment },
    ...(more.files === undefined ? {} : { files: more.files.files }),
  })
}

async function connect(node: IngestNode, version: Version, packet: Parameters<typeof MqttClient.connect>[1] = {}) {
  const { client, connack } = await MqttClient.connect({ port: node.mqttPort ?? 0, version }, packet)
  expect(connack.returnCode ?? connack.reasonCode).toBe(0)
  clients.push(client)
  return client
}

const texts = (frames: readonly { readonly payload: Uint8Array }[]) =>
  frames.map(({ payload }) => Buffer.from(payload).toString())

describe('a message is a record', () => {
  test.each(versions)('with topic, client id and time; complete, line breaks included, version %i', async (version) => {
    await using node = await start()
    const client = await connect(node, version, { clientId: 'träger/1' })
    const payload = '{"a":1,\n\n "b":"\r\n"}\n'
    // A node rounds the time of control otherwise than this machine.
    const before = (Date.now() - 1) * 1_000
    client.publish(payload, { topic: 'plant/7/größe' })
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 1 })
    const [frame, ...more] = await node.frames(endpoint.id)
    expect(more).toEqual([])
    expect(frame).toMatchObject({
      protocol: 'mqtt',
      layout: 'single',
      recordCount: 1,
      topic: 'plant/7/größe',
      client_id: 'träger/1',
      payload: Buffer.from(payload),
    })
    expect(frame).not.toHaveProperty('content_type')
    expect(frame).not.toHaveProperty('user_properties')
    expect(frame?.receivedAtMicros).toBeGreaterThanOrEqual(before)
  })

  test.each(versions)(
    'with U+FEFF at the start of its topic [MQTT-1.5.3-3], [MQTT-1.5.4-3] and noncharacters, version %i',
    async (version) => {
      await using node = await start()
      const client = await connect(node, version)
      client.publish('x', { topic: '\uFEFFa\uFFFE' })
      await client.next()
      const [frame] = await node.frames(endpoint.id)
      expect(frame?.topic).toBe('\uFEFFa\uFFFE')
    },
  )

  test.each(versions)('if it is binary, empty, or of the largest size, version %i', async (version) => {
    await using node = await start()
    const client = await connect(node, version)
    const payloads = [Buffer.from([0, 0xff, 0x0a, 0xc3]), Buffer.alloc(0), Buffer.alloc(MiB, 0x61)]
    for (const [index, payload] of payloads.entries()) {
      client.publish(payload, { messageId: index + 1 })
      expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: index + 1 })
    }
    const frames = await node.frames(endpoint.id)
    expect(frames.map(({ payload }) => Buffer.compare(payload, payloads.shift() ?? Buffer.from('?')))).toEqual([0, 0, 0])
  })

  test.each(versions)('not if it is one byte too long: 0x95, and nothing is stored, version %i', async (version) => {
    await using node = await start()
    const client = await connect(node, version)
    client.publish(Buffer.alloc(MiB + 1))
    await expectEnd(client, 0x95)
    expect(await node.frames(endpoint.id)).toEqual([])
  })

  test('with content type and user properties of 5, in order, names repeated [MQTT-3.3.2-18]', async () => {
    await using node = await start()
    const client = await connect(node, 5)
    client.publish('{}', {
      properties: {
        contentType: 'application/json',
        userProperties: { site: 'north', __proto__x: 'y', tag: ['a', 'b'] },
        payloadFormatIndicator: true,
        messageExpiryInterval: 10,
        responseTopic: 'answers',
        correlationData: Buffer.from([0xff]),
      },
    })
    await client.next()
    const [frame] = await node.frames(endpoint.id)
    expect(frame).toMatchObject({
      content_type: 'application/json',
      user_properties: { site: 'north', __proto__x: 'y', tag: ['a', 'b'] },
    })
  })

  test.each(versions)('retained or not, DUP or not [MQTT-3.3.1-1], version %i', async (version) => {
    await using node = await start()
    const client = await connect(node, version)
    client.publish('1', { retain: true })
    client.publish('2', { messageId: 2, dup: true })
    client.publish('2', { messageId: 2, dup: true })
    for (const messageId of [1, 2, 2]) expect(await client.next()).toMatchObject({ cmd: 'puback', messageId })
    expect(texts(await node.frames(endpoint.id))).toEqual(['1', '2', '2'])
  })

  test.each(versions)(
    'with QoS 0 too, without a response; those before a PUBACK are stored with it, version %i',
    async (version) => {
      await using node = await start()
      const client = await connect(node, version)
      for (const payload of ['a', 'b']) client.publish(payload, { qos: 0 })
      client.publish('c', { messageId: 9 })
      expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 9 })
      expect(client.waiting).toBe(0)
      const metrics = await (await fetch(`${node.url}/metrics`)).text()
      expect(metrics).toContain('inlet_mqtt_messages_total{qos="0",process="ingest"} 2')
      expect(metrics).toContain('inlet_mqtt_messages_total{qos="1",process="ingest"} 1')
      expect(metrics, 'user names of all accounts').not.toContain('anybody')
      expect(texts(await node.frames(endpoint.id))).toEqual(['a', 'b', 'c'])
    },
  )

  test('messages are counted by user name, shown only with the metrics token; a key sent as user name is never shown', async () => {
    const token = 'a-secret-of-the-operator'
    await using node = await start({ environment: { INLET_METRICS_TOKEN: token } })
    for (const username of ['anybody', 'ing_live_oops']) {
      const client = await connect(node, 4, { username, clientId: username })
      client.publish('a')
      await client.next()
    }
    expect((await fetch(`${node.url}/metrics`)).status).toBe(401)
    const metrics = await (await fetch(`${node.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text()
    expect(metrics).toContain('inlet_mqtt_client_messages_total{username="anybody",process="ingest"} 1')
    expect(metrics).toContain('username="(other)",process="ingest"} 1')
    expect(metrics).not.toContain('ing_live_')
  })
})

describe('above a limit', () => {
  test.each(versions)('QoS 2 ends the connection with 0x9B [MQTT-3.2.2-11], version %i', async (version) => {
    await using node = await start()
    const client = await connect(node, version)
    client.publish('no', { qos: 2 })
    await expectEnd(client, 0x9b)
    expect(await node.frames(endpoint.id)).toEqual([])
  })
  test.each(versions)('QoS 1 ends it if qos_max is 0; QoS 0 messages before it are stored, version %i', async (version) => {
    await using node = await start({ endpoint: { ...endpoint, mqtt_config: { ...mqttSettings, qos_max: 0 } } })
    const client = await connect(node, version)
    client.publish('yes', { qos: 0 })
    client.publish('no')
    await expectEnd(client, 0x9b)
    expect(texts(await node.frames(endpoint.id))).toEqual(['yes'])
  })
  test.each([
    ['a wildcard [MQTT-3.3.2-2]', 'a/+/b'],
    ['a wildcard [MQTT-4.7.1-1]', 'a/#'],
    ['1 025 bytes', `${'é'.repeat(512)}x`],
    ['33 levels', 'a/'.repeat(32)],
  ])('a topic with %s: 0x90', async (_, topic) => {
    await using node = await start()
    for (const version of versions) {
      const client = await connect(node, version)
      client.publish('no', { topic })
      await expectEnd(client, 0x90)
    }
    expect(await node.frames(endpoint.id)).toEqual([])
  })
  test('a topic of 1 024 bytes or 32 levels is accepted', async () => {
    await using node = await start()
    const client = await connect(node, 4)
    client.publish('1', { topic: 'é'.repeat(512) })
    client.publish('2', { topic: 'a/'.repeat(31), messageId: 2 })
    expect(await client.next()).toMatchObject({ messageId: 1 })
    expect(await client.next()).toMatchObject({ messageId: 2 })
  })
  test('properties above 16 KiB: 0x95', async () => {
    await using node = await start()
    const client = await connect(node, 5)
    client.publish('no', { properties: { userProperties: { big: 'x'.repeat(16 * 1024) } } })
    await expectEnd(client, 0x95)
  })
})

describe('topic aliases of 5', () => {
  test('replace their topic, can be reassigned, and last as long as the connection [MQTT-3.3.2-7]', async () => {
    await using node = await start()
    const client = await connect(node, 5)
    const sent = [
      { topic: 'one', properties: { topicAlias: 16 } },
      { topic: '', properties: { topicAlias: 16 } },
      { topic: 'two', properties: { topicAlias: 16 } },
      { topic: '', properties: { topicAlias: 16 } },
    ]
    for (const [index, more] of sent.entries()) client.publish('x', { ...more, messageId: index + 1 })
    for (const index of sent.keys()) expect(await client.next()).toMatchObject({ messageId: index + 1 })
    client.destroy()
    const again = await connect(node, 5, { clientId: 'another' })
    again.publish('no', { topic: '', properties: { topicAlias: 16 } })
    await expectEnd(again, 0x82)
    const frames = await node.frames(endpoint.id)
    expect(frames.map(({ topic }) => topic)).toEqual(['one', 'one', 'two', 'two'])
  })
  test.each([
    ['0 [MQTT-3.3.2-8]', Buffer.from([0x32, 9, 0, 1, 0x61, 0, 1, 3, 0x23, 0, 0]), 0x94],
    ['above the maximum [MQTT-3.3.2-9]', Buffer.from([0x32, 9, 0, 1, 0x61, 0, 1, 3, 0x23, 0, 17]), 0x94],
    ['given twice', Buffer.from([0x32, 12, 0, 1, 0x61, 0, 1, 6, 0x23, 0, 1, 0x23, 0, 1]), 0x82],
    ['neither alias nor topic', Buffer.from([0x32, 5, 0, 0, 0, 1, 0]), 0x82],
  ])('%s', async (_, bytes, code) => {
    await using node = await start()
    const client = await connect(node, 5)
    client.sendBytes(bytes)
    await expectEnd(client, code)
    expect(await node.frames(endpoint.id)).toEqual([])
  })
})

describe('PUBACK', () => {
  test.each(versions)('is sent after fdatasync, never before, version %i', async (version) => {
    const disk = new SteeredFiles()
    await using node = await start({ files: disk })
    const client = await connect(node, version)
    client.publish('first')
    await client.next()
    const resumeDisk = disk.hang()
    const before = disk.syncs
    client.publish('second', { messageId: 2 })
    await until('fdatasync to be asked for', () => disk.syncs > before)
    // The connection works, but there is no PUBACK yet.
    client.send({ cmd: 'pingreq' })
    expect(await client.next()).toMatchObject({ cmd: 'pingresp' })
    expect(client.waiting).toBe(0)
    resumeDisk()
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 2 })
  })

  test('has four bytes in both versions: 5 leaves the reason code for success out (§3.4.2.1)', async () => {
    await using node = await start()
    for (const version of versions) {
      const client = await connect(node, version)
      const answer = Promise.withResolvers<Buffer>()
      client.socket?.once('data', answer.resolve)
      client.publish('x', { messageId: 0x1234 })
      expect((await answer.promise).toString('hex')).toBe('40021234')
    }
  })

  test.each(versions)('keeps the order of the messages, whatever their ids [MQTT-4.6.0-2], version %i', async (version) => {
    const disk = new SteeredFiles()
    await using node = await start({ files: disk })
    const client = await connect(node, version)
    const ids = Array.from({ length: 1_500 }, (_, index) => ((index * 7_919) % 65_535) + 1)
    for (const [index, messageId] of ids.entries()) {
      client.publish(`${index}`, { messageId })
      // Several chunks and several groups.
      if (index % 100 === 0) await new Promise(setImmediate)
    }
    for (const messageId of ids) expect((await client.next()).messageId).toBe(messageId)
    expect(texts(await node.frames(endpoint.id))).toEqual(ids.map((_, index) => `${index}`))
  })

  test.each(versions)(
    'is never sent if fdatasync fails: 0x89, and the message is stored when sent again, version %i',
    async (version) => {
      const disk = new SteeredFiles()
      await using node = await start({ files: disk })
      const client = await connect(node, version)
      disk.failOnce()
      client.publish('again', { messageId: 5 })
      client.publish('later', { messageId: 6 })
      await expectEnd(client, 0x89)
      await node.until('/readyz', ({ status }) => status === 200)
      const anew = await connect(node, version)
      for (const [payload, messageId] of [
        ['again', 5],
        ['later', 6],
      ] as const) {
        anew.publish(payload, { messageId, dup: true })
        expect(await anew.next()).toMatchObject({ cmd: 'puback', messageId })
      }
      expect(texts(await node.frames(endpoint.id))).toEqual(['again', 'later'])
    },
  )

  test('is not sent after a takeover; both messages are stored', async () => {
    const disk = new SteeredFiles()
    await using node = await start({ files: disk })
    const first = await connect(node, 5)
    first.publish('warm')
    await first.next()
    const resumeDisk = disk.hang()
    first.publish('in flight', { messageId: 2 })
    await until('the message to be under way', async () => (await node.metric('inlet_ingest_in_flight_bytes')) > 0)
    const second = await connect(node, 5)
    await expectEnd(first, 0x8e)
    second.publish('in flight', { messageId: 2, dup: true })
    resumeDisk()
    expect(await second.next()).toMatchObject({ cmd: 'puback', messageId: 2 })
    expect(second.waiting).toBe(0)
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
    expect(texts(await node.frames(endpoint.id))).toEqual(['warm', 'in flight', 'in flight'])
  })

  test.each(versions)('comes for every message of a client that exceeds the receive maximum, version %i', async (version) => {
    const disk = new SteeredFiles()
    await using node = await start({ files: disk })
    const client = await connect(node, version)
    client.publish('warm')
    await client.next()
    const resumeDisk = disk.hang()
    const properties = version === 5 ? [0] : []
    const one = (id: number) => Buffer.from([0x32, 5 + properties.length, 0, 1, 0x61, id >> 8, id & 0xff, ...properties])
    const count = 20_000
    client.sendBytes(Buffer.concat(Array.from({ length: count }, (_, index) => one(index + 1))))
    await until('reading to pause', async () => (await node.metric('inlet_ingest_in_flight_bytes')) > 0)
    resumeDisk()
    for (let id = 1; id <= count; id++) expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: id })
    expect(await node.frames(endpoint.id)).toHaveLength(count + 1)
  })
})

describe('back-pressure', () => {
  test.each(versions)('pauses reading while nothing becomes durable, then stores everything, version %i', async (version) => {
    const disk = new SteeredFiles()
    await using node = await start({ files: disk })
    const client = await connect(node, version)
    client.publish('warm')
    await client.next()
    const resumeDisk = disk.hang()
    const payload = Buffer.alloc(64 * 1024, 0x61)
    const count = 300
    for (let id = 1; id <= count; id += 1) client.publish(payload, { messageId: id })
    await until('memory in flight', async () => (await node.metric('inlet_ingest_in_flight_bytes')) > 4 * MiB)
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBeLessThan(4 * MiB + 4 * 66_000)
    expect(client.waiting).toBe(0)
    resumeDisk()
    for (let id = 1; id <= count; id += 1) expect((await client.next()).messageId).toBe(id)
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
    expect(await node.frames(endpoint.id)).toHaveLength(count + 1)
  })

  test('pauses all connections at half of the bytes in flight; all resume, and nothing is lost', async () => {
    const disk = new SteeredFiles()
    await using node = await IngestNode.start({
      snapshot: aSnapshot({ endpoints: [endpoint] }),
      environment: { INLET_MQTT_LISTEN: '127.0.0.1:0', INLET_MAX_IN_FLIGHT_BYTES: '8MiB', INLET_MAX_REQUEST_BYTES: '1MiB' },
      files: disk.files,
    })
    const inFlight = () => node.metric('inlet_ingest_in_flight_bytes')
    const senders: MqttClient[] = []
    for (let index = 0; index < 10; index += 1)
      senders.push(await connect(node, index % 2 === 0 ? 4 : 5, { clientId: `${index}` }))
    senders[0]?.publish('warm', { messageId: 9_999 })
    await senders[0]?.next()
    const resumeDisk = disk.hang()
    const count = 50
    const payload = Buffer.alloc(32 * 1024, 0x61)
    for (const sender of senders) for (let id = 1; id <= count; id += 1) sender.publish(payload, { messageId: id })
    await until('half of it to be in flight', async () => (await inFlight()) > 4 * MiB)
    const refused = await MqttClient.connect({ port: node.mqttPort ?? 0, version: 5 }, { clientId: 'late' })
    expect(refused.connack.reasonCode).toBe(0x89)
    expect(await inFlight()).toBeLessThan(6 * MiB)
    resumeDisk()
    for (const sender of senders) for (let id = 1; id <= count; id += 1) expect((await sender.next()).messageId).toBe(id)
    expect(await inFlight()).toBe(0)
    expect(await node.frames(endpoint.id)).toHaveLength(1 + senders.length * count)
  })

  test('pauses open connections while the disk is full; they resume without help, and nothing is lost', async () => {
    const disk = new SteeredFiles()
    await using node = await IngestNode.start({
      snapshot: aSnapshot({ endpoints: [endpoint] }),
      environment: { INLET_MQTT_LISTEN: '127.0.0.1:0', INLET_DISK_RESERVE_BYTES: '1MiB' },
      files: disk.files,
    })
    const client = await connect(node, 4)
    const ws = await MqttClient.connect(
      { port: Number(new URL(node.url).port), transport: 'ws', version: 5 },
      { clientId: 'over ws' },
    )
    clients.push(ws.client)
    disk.freeBytes = 0
    await node.until('/readyz', ({ status }) => status === 503)
    // The node notices within a second.
    await until('reading to stop', async () => {
      client.send({ cmd: 'pingreq' })
      return (await client.next(500).catch(() => 'silent')) === 'silent'
    })
    for (const each of [client, ws.client]) for (const id of [1, 2, 3]) each.publish(`${id}`, { messageId: id })
    disk.freeBytes = undefined
    for (const each of [client, ws.client]) {
      const ids: number[] = []
      while (ids.length < 3) {
        const packet = await each.next()
        if (packet.cmd === 'puback') ids.push(packet.messageId)
        else expect(packet.cmd).toBe('pingresp')
      }
      expect(ids).toEqual([1, 2, 3])
    }
    expect(await node.frames(endpoint.id)).toHaveLength(6)
  })
})

describe('a stop of the node', () => {
  test('does not wait for a disk that hangs, and acknowledges nothing that is not stored', async () => {
    const disk = new SteeredFiles()
    await using node = await start({ files: disk })
    const client = await connect(node, 5)
    client.publish('warm')
    await client.next()
    const resumeDisk = disk.hang()
    client.publish('in flight', { messageId: 2 })
    await until('the message to be under way', async () => (await node.metric('inlet_ingest_in_flight_bytes')) > 0)
    const stopping = node.stop(AbortSignal.timeout(200))
    expect(await client.next()).toBeUndefined()
    resumeDisk()
    await stopping
  })

  test.each(versions)(
    'acknowledges the messages it read, sends 0x8B, and keeps all acknowledged messages, version %i',
    async (version) => {
      await using node = await start()
      const client = await connect(node, version)
      const acknowledged = new Set<number>()
      let disconnect: number | undefined
      const reading = (async () => {
        for (let packet = await client.next(); packet !== undefined; packet = await client.next()) {
          if (packet.cmd === 'puback') acknowledged.add(packet.messageId)
          else disconnect = packet.reasonCode
        }
      })()
      const sending = (async () => {
        for (let id = 1; id < 65_000 && !client.isClosed; id += 1) {
          client.publish(`${id}`, { messageId: id })
          // Within the receive maximum.
          do await new Promise(setImmediate)
          while (id - acknowledged.size > 1_000 && !client.isClosed)
        }
      })()
      await until('messages to come', () => acknowledged.size > 500)
      await node.stop()
      await Promise.all([reading, sending])
      expect(disconnect).toBe(version === 5 ? 0x8b : undefined)
      const stored = new Set(texts(await node.frames(endpoint.id)).map(Number))
      expect([...acknowledged].filter((id) => !stored.has(id))).toEqual([])
    },
  )
})

describe('the user property idempotency-key', () => {
  const once = (key: string) => ({ properties: { userProperties: { 'idempotency-key': key } } })

  test('a repeated message is acknowledged and stored once; acknowledgements keep their order', async () => {
    await using node = await start()
    const client = await connect(node, 5)
    client.publish('1', { messageId: 1, ...once('k') })
    client.publish('2', { messageId: 2 })
    client.publish('1', { messageId: 3, ...once('k') })
    client.publish('4', { messageId: 4 })
    for (const messageId of [1, 2, 3, 4]) expect(await client.next()).toMatchObject({ cmd: 'puback', messageId })
    const stored = texts(await node.frames(endpoint.id))
    expect(stored.sort()).toEqual(['1', '2', '4'])
  })

  test('another message under the same key is refused in its PUBACK, and the connection stays', async () => {
    await using node = await start()
    const client = await connect(node, 5)
    client.publish('1', { messageId: 1, ...once('k') })
    client.publish('2', { messageId: 2, ...once('k') })
    client.publish('3', { messageId: 3, ...once('not a key') })
    client.publish('4', { messageId: 4 })
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 1, reasonCode: 0 })
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 2, reasonCode: 0x83 })
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 3, reasonCode: 0x83 })
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 4, reasonCode: 0 })
    expect(texts(await node.frames(endpoint.id)).sort()).toEqual(['1', '4'])
  })
})
