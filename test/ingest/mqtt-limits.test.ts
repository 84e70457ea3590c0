/** Slow, greedy and absent clients are bounded in time and memory. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { generate, type Packet } from 'mqtt-packet'
import { describe, expect, onTestFinished, test } from 'vitest'
import { KiB, MiB } from '#lib/bytes.ts'
import { secretOf } from '../support/ingest-node.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { connectPacket, type MqttClient } from '../support/mqtt-client.ts'
import { expectEnd, MqttNode, mqttEndpoint, mqttSettings } from '../support/mqtt-node.ts'
import { SteeredFiles } from '../support/steered-files.ts'
import { until } from '../support/until.ts'

const transports = ['tcp', 'ws'] as const

/** The socket of a client, to bypass its framing. */
function socketOf(client: MqttClient): { write(bytes: Buffer): void; pause(): void } {
  return client.socket ?? (client.webSocket as unknown as { _socket: { write(bytes: Buffer): void; pause(): void } })._socket
}

/** Advances the clock second by second, and lets the node read in between. */
async function pass(clock: ManualClock, seconds: number, each: () => void = () => undefined): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    each()
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate)
    clock.advance(1_000)
  }
}

async function startAt(clock: ManualClock, keepalive_max_s = 300, files = new SteeredFiles()): Promise<MqttNode> {
  return MqttNode.start({
    clock,
    files: files.files,
    endpoint: mqttEndpoint({ mqtt_config: { ...mqttSettings, keepalive_max_s } }),
    environment: { INLET_DISK_RESERVE_BYTES: '1MiB' },
  })
}

describe('keep alive', () => {
  test.each([
    { transport: 'tcp', version: 4, keepalive: 20, max: 300 },
    { transport: 'ws', version: 5, keepalive: 20, max: 300 },
    { transport: 'tcp', version: 5, keepalive: 0, max: 20 },
    { transport: 'tcp', version: 4, keepalive: 600, max: 20 },
  ] as const)(
    'of $keepalive, capped at $max, is enforced at one and a half times: 0x8D [MQTT-3.1.2-22], [MQTT-3.1.2-24], $transport, version $version',
    async ({ transport, version, keepalive, max }) => {
      const clock = new ManualClock()
      await using mqtt = await startAt(clock, max)
      const client = await mqtt.connect(mqtt.over(transport, version), { keepalive })
      await pass(clock, 29)
      expect(await mqtt.connections()).toBe(1)
      // Any packet counts, not only PINGREQ.
      client.publish('x')
      expect(await client.next()).toMatchObject({ cmd: 'puback' })
      await pass(clock, 29)
      expect(await mqtt.connections()).toBe(1)
      await pass(clock, 4)
      await expectEnd(client, 0x8d)
      expect(await mqtt.connections()).toBe(0)
    },
  )
})

describe('CONNECT', () => {
  test.each(transports)('must arrive completely within 5 s, over %s', async (transport) => {
    const clock = new ManualClock()
    await using mqtt = await startAt(clock)
    const silent = await mqtt.open(mqtt.over(transport))
    const slow = await mqtt.open(mqtt.over(transport))
    const bytes = generate(connectPacket(4))
    let at = 0
    const trickle = () => {
      slow.sendBytes(bytes.subarray(at, at + 1))
      at += 1
    }
    await pass(clock, 4, trickle)
    expect([silent.isClosed, slow.isClosed]).toEqual([false, false])
    await pass(clock, 3, trickle)
    expect(await silent.next()).toBeUndefined()
    expect(await slow.next()).toBeUndefined()
  })

  test('in a WebSocket frame is cut off at its announced length, before the frame is complete', async () => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.open(mqtt.over('ws'))
    const frameHead = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0])
    // 16 384 bytes after the fixed header: more than 16 KiB with it.
    socketOf(client).write(Buffer.concat([frameHead, Buffer.from([0x10, 0x80, 0x80, 0x01])]))
    await client.closed()
    const metrics = await (await fetch(`${mqtt.node.url}/metrics`)).text()
    expect(metrics).toContain('inlet_mqtt_connects_total{outcome="packet_too_large",process="ingest"} 1')
  })
})

describe('a packet that does not become complete', () => {
  test.each(transports)('within INLET_REQUEST_TIMEOUT_SECONDS ends the connection: 0x8D, over %s', async (transport) => {
    const clock = new ManualClock()
    await using mqtt = await startAt(clock)
    const client = await mqtt.connect(mqtt.over(transport, 5), { keepalive: 300 })
    const packet = generate(
      { cmd: 'publish', topic: 't', payload: 'x'.repeat(500), qos: 1, messageId: 1, dup: false, retain: false },
      { protocolVersion: 5 },
    )
    let at = 0
    const trickle = () => {
      client.sendBytes(packet.subarray(at, at + 2))
      at += 2
    }
    await pass(clock, 58, trickle)
    expect(client.isClosed).toBe(false)
    await pass(clock, 5, trickle)
    await expectEnd(client, 0x8d)
  })

  test('ends the connection also for a WebSocket frame that trickles in', async () => {
    const clock = new ManualClock()
    await using mqtt = await startAt(clock)
    const client = await mqtt.connect(mqtt.over('ws', 5), { keepalive: 300 })
    const frameHead = Buffer.from([0x82, 0xfe, 0x10, 0, 0, 0, 0, 0])
    // PUBLISH of 4 096 bytes.
    socketOf(client).write(Buffer.concat([frameHead, Buffer.from([0x30, 0xfd, 0x1f])]))
    await pass(clock, 64, () => socketOf(client).write(Buffer.from([0])))
    await expectEnd(client, 0x8d)
  })

  test('is not completed by WebSocket pings, which do not count as MQTT activity either', async () => {
    const clock = new ManualClock()
    await using mqtt = await startAt(clock)
    const client = await mqtt.connect(mqtt.over('ws', 5), { keepalive: 100 })
    const pings = () => {
      for (let count = 0; count < 20; count += 1) client.webSocket?.ping(Buffer.alloc(100))
    }
    await pass(clock, 145, pings)
    expect(await mqtt.connections()).toBe(1)
    expect(await mqtt.node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
    await pass(clock, 10, pings)
    await expectEnd(client, 0x8d)
  })

  test('empty WebSocket frames do not count as activity', async () => {
    const clock = new ManualClock()
    await using mqtt = await startAt(clock)
    const client = await mqtt.connect(mqtt.over('ws', 5), { keepalive: 20 })
    await pass(clock, 34, () => client.sendBytes(Buffer.alloc(0)))
    await expectEnd(client, 0x8d)
  })

  test('does not include packet after packet, wherever the chunks are cut', async () => {
    const clock = new ManualClock()
    await using mqtt = await startAt(clock)
    const client = await mqtt.connect(mqtt.over('tcp', 4), { keepalive: 300 })
    const packet = generate({ cmd: 'publish', topic: 't', payload: 'x'.repeat(100), qos: 0, dup: false, retain: false })
    client.sendBytes(packet.subarray(0, 50))
    await pass(clock, 100, () => client.sendBytes(Buffer.concat([packet.subarray(50), packet.subarray(0, 50)])))
    client.sendBytes(packet.subarray(50))
    client.send({ cmd: 'pingreq' })
    expect(await client.next()).toMatchObject({ cmd: 'pingresp' })
    expect(await mqtt.stored()).toHaveLength(101)
  })
})

describe('a WebSocket frame full of tiny packets', () => {
  const frameOf = (packet: Buffer) => Buffer.alloc(2 * MiB - 8).fill(packet)

  test('pauses at the bounds of its connection; in the end all of it is stored', async () => {
    const disk = new SteeredFiles()
    await using mqtt = await MqttNode.start({ files: disk.files })
    const client = await mqtt.connect(mqtt.over('ws'))
    client.publish('warm')
    await client.next()
    const inFlight = () => mqtt.node.metric('inlet_ingest_in_flight_bytes')
    const resumeDisk = disk.hang()
    const packet = generate({ cmd: 'publish', topic: 't', payload: '1234567', qos: 0, dup: false, retain: false })
    const frame = frameOf(packet)
    client.sendBytes(frame)
    const whole = Math.floor(frame.length / packet.length)
    // The rest of the frame has not been read.
    await until('messages in flight', async () => (await inFlight()) >= 2_048 * (256 + 7))
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate)
    expect(await inFlight()).toBeLessThan((2_048 + 4_096) * (256 + 7 + 64))
    resumeDisk()
    await until('all of them', async () => (await mqtt.node.metric('inlet_mqtt_accepted_bytes_total')) === 4 + whole * 7, 30_000)
    expect(await inFlight()).toBeLessThan(64 * KiB)
  })

  test('does not starve other connections', async () => {
    await using mqtt = await MqttNode.start()
    const greedy = await mqtt.connect(mqtt.over('ws'), { clientId: 'greedy' })
    const patient = await mqtt.connect(mqtt.over('tcp'))
    let answered = 0
    greedy.webSocket?.removeAllListeners('message').on('message', () => {
      answered += 1
    })
    greedy.sendBytes(frameOf(Buffer.from([0xc0, 0])))
    await until('the first answers', () => answered > 0)
    patient.send({ cmd: 'pingreq' })
    expect(await patient.next()).toMatchObject({ cmd: 'pingresp' })
    expect(answered).toBeLessThan(MiB / 2)
    greedy.destroy()
  })
})

describe('memory', () => {
  test.each(transports)('incomplete packets count as bytes in flight; 0x89 without room, over %s', async (transport) => {
    await using mqtt = await MqttNode.start({
      environment: { INLET_MAX_IN_FLIGHT_BYTES: '6MiB', INLET_MAX_REQUEST_BYTES: '1MiB' },
    })
    const inFlight = () => mqtt.node.metric('inlet_ingest_in_flight_bytes')
    const clients: MqttClient[] = []
    for (let index = 0; index < 12; index += 1) {
      clients.push(await mqtt.connect(mqtt.over(transport, 5), { clientId: `${index}` }))
    }
    const payload = Buffer.alloc(900 * KiB, 0x61)
    const packet = generate(
      { cmd: 'publish', topic: 't', payload, qos: 1, messageId: 1, dup: false, retain: false },
      { protocolVersion: 5 },
    )
    // Over WebSocket it is one frame.
    const masked = Buffer.concat([Buffer.from([0x82, 0xff, 0, 0, 0, 0]), Buffer.alloc(4), Buffer.alloc(4), packet])
    masked.writeUInt32BE(packet.length, 6)
    const bytes = transport === 'tcp' ? packet : masked
    for (const client of clients) socketOf(client).write(bytes.subarray(0, bytes.length - 10))
    await until('some to be cut off', () => clients.filter(({ isClosed }) => isClosed).length >= 3)
    expect(await inFlight()).toBeLessThanOrEqual(6 * MiB)
    const rest = clients.filter(({ isClosed }) => !isClosed)
    expect(rest.length).toBeGreaterThan(0)
    // Packets that found room are read to the end, although reading is paused for lack of room.
    for (const client of rest) socketOf(client).write(bytes.subarray(bytes.length - 10))
    for (const client of clients) {
      const packet = await client.next()
      if (packet.cmd === 'disconnect') expect(packet.reasonCode).toBe(0x89)
      else expect(packet).toMatchObject({ cmd: 'puback', messageId: 1 })
    }
    await until('all memory to be given back', async () => (await inFlight()) === 0)
    const acknowledged = clients.filter(({ isClosed }) => !isClosed).length
    expect(await mqtt.stored()).toHaveLength(acknowledged)
  })

  test.each(transports)('is released when a connection ends in the middle of a packet, over %s', async (transport) => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over(transport))
    const bytes = generate({ cmd: 'publish', topic: 't', payload: Buffer.alloc(900 * KiB), qos: 0, dup: false, retain: false })
    client.sendBytes(bytes.subarray(0, 500 * KiB))
    await until('it to be counted', async () => (await mqtt.node.metric('inlet_ingest_in_flight_bytes')) >= 500 * KiB)
    client.destroy()
    await until('it to be given back', async () => (await mqtt.node.metric('inlet_ingest_in_flight_bytes')) === 0)
    expect(await mqtt.connections()).toBe(0)
  })

  test.each(transports)('a client that never reads is paused, and cut off after 30 s, over %s', async (transport) => {
    const clock = new ManualClock()
    await using mqtt = await startAt(clock)
    const client = await mqtt.connect(mqtt.over(transport, 5), { keepalive: 300 })
    socketOf(client).pause()
    const before = process.memoryUsage.rss()
    // The response is six times as long as the request.
    const subscribe = generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'a', qos: 0 }] } as unknown as Packet, {
      protocolVersion: 5,
    })
    const many = Buffer.concat(Array.from({ length: 5_000 }, () => subscribe))
    for (let sent = 0; sent < 60; sent += 1) client.sendBytes(many)
    let seconds = 0
    await until('it to be cut off', async () => {
      await pass(clock, 1)
      seconds += 1
      return (await mqtt.connections()) === 0
    })
    expect(seconds).toBeGreaterThan(25)
    expect(seconds).toBeLessThan(200)
    expect(process.memoryUsage.rss() - before).toBeLessThan(150 * MiB)
  })
})

describe('while nothing is read', () => {
  test.each(transports)(
    'a client that has gone no longer counts after one and a half times the keep alive, over %s',
    async (transport) => {
      const clock = new ManualClock()
      const disk = new SteeredFiles()
      await using mqtt = await startAt(clock, 300, disk)
      const client = await mqtt.connect(mqtt.over(transport, 5), { keepalive: 20 })
      const stays = await mqtt.connect(mqtt.over(transport, 5), { keepalive: 300, clientId: 'stays' })
      disk.freeBytes = 0
      await pass(clock, 1)
      await mqtt.node.until('/readyz', ({ status }) => status === 503)
      await pass(clock, 2)
      // While bytes wait unread, the end of the connection goes unnoticed.
      client.publish('unread')
      await pass(clock, 1)
      client.publish('unread as well')
      await pass(clock, 1)
      client.webSocket?.close()
      client.socket?.end()
      await pass(clock, 20)
      expect(await mqtt.connections()).toBe(2)
      await pass(clock, 12)
      await until('one to be gone', async () => (await mqtt.connections()) === 1)
      disk.freeBytes = undefined
      await pass(clock, 1)
      await mqtt.node.until('/readyz', ({ status }) => status === 200)
      await pass(clock, 2)
      stays.publish('x')
      expect(await stays.next()).toMatchObject({ cmd: 'puback' })
    },
  )
})

describe('INLET_MAX_CONNECTIONS', () => {
  test('bounds HTTP, WebSocket and TCP together', async () => {
    await using mqtt = await MqttNode.start({ environment: { INLET_MAX_CONNECTIONS: '8' } })
    const count = () => mqtt.node.metric('inlet_ingest_connections')
    const http = connect(Number(new URL(mqtt.node.url).port), '127.0.0.1')
    onTestFinished(() => {
      http.destroy()
    })
    const headers = `Host: x\r\nX-API-Key: ${secretOf('a')}\r\nContent-Type: application/x-ndjson\r\nContent-Length: 1`
    http.write(`POST /v1/ingest HTTP/1.1\r\n${headers}\r\n\r\n1`)
    await once(http, 'data')
    const codes: number[] = []
    const clients: MqttClient[] = []
    for (let index = 0; index < 12; index += 1) {
      const client = await mqtt.open(mqtt.over(index % 2 === 0 ? 'tcp' : 'ws'))
      client.send(connectPacket(4, { clientId: `${index}` }))
      codes.push((await client.next()).returnCode)
      clients.push(client)
    }
    expect(codes).toEqual([0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3])
    // The connection of the request for the metrics counts, too.
    await until('the refused ones to be closed', async () => (await count()) === 9)
    clients[0]?.destroy()
    await until('a place to be free', async () => (await count()) === 8)
    await mqtt.connect(mqtt.over('tcp'), { clientId: 'late' })
  })
})
