/** MQTT over WebSocket (§6 of both versions, RFC 6455), on the same listener as HTTP. */
import type { Socket } from 'node:net'
import { generate } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { MqttNode, useMqttNode } from '../support/mqtt-node.ts'
import { RawClient } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const head = (path: string, more: Record<string, string> = {}) =>
  [
    `GET ${path} HTTP/1.1`,
    ...Object.entries({
      Host: 'x',
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': key,
      'Sec-WebSocket-Protocol': 'mqtt',
      ...more,
    })
      .filter(([, value]) => value !== '')
      .map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n')

async function answer(mqtt: MqttNode, request: string) {
  const client = await RawClient.connect(mqtt.node.url)
  await client.send(request)
  const answer = await client.answer()
  client.socket.destroy()
  return answer
}

/** Its tests only look at what it responds. */
const running = useMqttNode()

describe('the handshake', () => {
  test.each(['mqtt', 'mqttv3.1, mqtt', 'mqtt,x'])(
    'with the subprotocol among "%s": 101 and `mqtt` [MQTT-6.0.0-3], [MQTT-6.0.0-4]',
    async (offered) => {
      const mqtt = running()
      const { status, headers } = await answer(mqtt, head('/mqtt', { 'Sec-WebSocket-Protocol': offered }))
      expect(status).toBe(101)
      expect(headers['sec-websocket-protocol']).toBe('mqtt')
      // RFC 6455 §1.3
      expect(headers['sec-websocket-accept']).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
      expect(headers['sec-websocket-extensions']).toBeUndefined()
    },
  )
  test.each(['', 'mqttv3.1', 'MQTT', 'x-mqtt'])(
    'without the subprotocol ("%s"): 400 with a reason [MQTT-6.0.0-3]',
    async (offered) => {
      const mqtt = running()
      const { status, json } = await answer(mqtt, head('/mqtt', { 'Sec-WebSocket-Protocol': offered }))
      expect(status).toBe(400)
      expect(json).toMatchObject({ error: 'bad_request', detail: expect.stringContaining('Sec-WebSocket-Protocol') })
    },
  )
  test.each([
    ['another version', { 'Sec-WebSocket-Version': '12' }, 400, 'Sec-WebSocket-Version must be 13'],
    ['no key', { 'Sec-WebSocket-Key': '' }, 400, 'Sec-WebSocket-Key'],
    ['a malformed key', { 'Sec-WebSocket-Key': 'abc' }, 400, 'Sec-WebSocket-Key'],
    ['another protocol to upgrade to', { Upgrade: 'h2c' }, 400, 'ws://'],
  ] as const)('with %s: refused', async (_, change, code, detail) => {
    const mqtt = running()
    const { status, headers, json } = await answer(mqtt, head('/mqtt', change))
    expect(status).toBe(code)
    expect(json).toMatchObject({ error: 'bad_request', detail: expect.stringContaining(detail) })
    // RFC 6455 §4.4
    expect(headers['sec-websocket-version']).toBe('13')
  })
  test('POST is not a handshake', async () => {
    const mqtt = running()
    const refused = await answer(mqtt, head('/mqtt').replace('GET', 'POST'))
    expect(refused).toMatchObject({ status: 405, headers: { allow: 'GET' } })
  })
  test('with INLET_CORS_ORIGINS only pages of the list, and clients that are no page, connect; without it all do', async () => {
    const from = async (mqtt: MqttNode, origin: string) => answer(mqtt, head('/mqtt', { Origin: origin }))
    const open = running()
    expect((await from(open, 'https://any.example')).status).toBe(101)
    await using limited = await MqttNode.start({ environment: { INLET_CORS_ORIGINS: 'https://app.example.com' } })
    expect((await from(limited, 'https://app.example.com')).status).toBe(101)
    expect((await from(limited, '')).status).toBe(101)
    for (const origin of ['https://any.example', 'https://app.example.com:8443', 'null']) {
      expect(await from(limited, origin)).toMatchObject({
        status: 403,
        json: { error: 'forbidden', detail: expect.stringContaining(`${origin} may not send here`) },
      })
    }
  })
  test('a plain GET gets a hint how to connect', async () => {
    const mqtt = running()
    const response = await fetch(`${mqtt.node.url}/mqtt`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: 'bad_request', detail: expect.stringContaining('ws://') })
  })
  test('an upgrade on another path is ignored (RFC 9110 §7.8)', async () => {
    const mqtt = running()
    expect(await answer(mqtt, head('/healthz'))).toMatchObject({ status: 200, body: '{"status":"ok"}' })
    expect((await answer(mqtt, head('/mqtt/'))).status).toBe(404)
    expect((await answer(mqtt, head('/v1/ingest'))).status).toBe(405)
  })
})

describe('frames', () => {
  test('a text frame ends the connection, and bytes after it are not read [MQTT-6.0.0-1]', async () => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('ws', 5))
    const publish = generate(
      { cmd: 'publish', topic: 't', payload: 'x', qos: 0, dup: false, retain: false },
      { protocolVersion: 5 },
    )
    client.webSocket?.send('text', { binary: false })
    client.sendBytes(publish)
    expect(await client.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x81 })
    await client.closed()
    expect(client.closeCode).toBe(1003)
    expect(await mqtt.stored()).toEqual([])
  })

  test('hold several packets, part of a packet, or come in fragments [MQTT-6.0.0-2]', async () => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('ws'))
    const one = (id: number) =>
      generate({ cmd: 'publish', topic: 't', payload: `${id}`, qos: 1, messageId: id, dup: false, retain: false })
    client.sendBytes(Buffer.concat([one(1), one(2), one(3).subarray(0, 4)]))
    client.sendBytes(one(3).subarray(4))
    const fragments = one(4)
    client.webSocket?.send(fragments.subarray(0, 2), { fin: false })
    client.webSocket?.ping()
    client.webSocket?.send(fragments.subarray(2), { fin: true })
    for (const messageId of [1, 2, 3, 4]) expect(await client.next()).toMatchObject({ cmd: 'puback', messageId })
    expect(await mqtt.stored()).toEqual(['t 1', 't 2', 't 3', 't 4'])
  })

  test('the largest message fits in one frame; a frame above 2 MiB ends the connection with 1009', async () => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('ws', 5))
    client.publish(Buffer.alloc(1024 * 1024, 0x61))
    expect(await client.next()).toMatchObject({ cmd: 'puback' })
    client.sendBytes(Buffer.alloc(2 * 1024 * 1024 + 1))
    await client.closed()
    expect(client.closeCode).toBe(1009)
    await until('nobody to be there', async () => (await mqtt.connections()) === 0)
  })

  test('a message in more than 4 096 fragments ends the connection with 1008', async () => {
    const mqtt = running()
    const client = await mqtt.connect(mqtt.over('ws'))
    // A message of 8 000 bytes, byte by byte.
    const packet = generate({ cmd: 'publish', topic: 't', payload: Buffer.alloc(8_000), qos: 0, dup: false, retain: false })
    for (const byte of packet.subarray(0, 4_098)) client.webSocket?.send(Buffer.from([byte]), { fin: false })
    await client.closed()
    expect(client.closeCode).toBe(1008)
  })

  test.each([
    ['not masked', Buffer.from([0x82, 0x02, 0xc0, 0])],
    ['of an unknown kind', Buffer.from([0x83, 0x80, 1, 2, 3, 4])],
    ['with a reserved bit', Buffer.from([0xc2, 0x80, 1, 2, 3, 4])],
  ])('%s ends the connection (RFC 6455 §5)', async (_, bytes) => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('ws'))
    // Bypasses the client's framing.
    const socket = (client.webSocket as unknown as { _socket: { write(bytes: Buffer): void } })._socket
    socket.write(bytes)
    await client.closed()
    expect(client.closeCode).toBe(1002)
    await until('nobody to be there', async () => (await mqtt.connections()) === 0)
  })

  test.each(['before CONNECT', 'after it'])('a client that floods pings and does not read is cut off, %s', async (when) => {
    await using mqtt = await MqttNode.start()
    const client = when === 'after it' ? await mqtt.connect(mqtt.over('ws')) : await mqtt.open(mqtt.over('ws'))
    const { _socket: socket } = client.webSocket as unknown as { _socket: Socket }
    socket.pause().on('error', () => undefined)
    const ping = Buffer.concat([Buffer.from([0x89, 0x80 | 125]), Buffer.alloc(4 + 125)])
    const pings = Buffer.alloc(ping.length * 8_000, ping)
    // Reads the responses that the kernel buffered.
    for (let sent = 0; sent < 50 && !socket.destroyed; sent += 1) {
      socket.write(pings)
      await new Promise(setImmediate)
    }
    await client.closed()
    expect(await mqtt.connections()).toBe(0)
  })

  test('a close frame is answered with its code and reason, and pings with their payload (RFC 6455 §5.5)', async () => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('ws'))
    const pong = new Promise((resolve) => client.webSocket?.once('pong', resolve))
    client.webSocket?.ping('payload')
    expect(await pong).toEqual(Buffer.from('payload'))
    const closed = new Promise((resolve) => client.webSocket?.once('close', (code, reason) => resolve([code, `${reason}`])))
    client.webSocket?.close(4_321, 'bye')
    expect(await closed).toEqual([4_321, 'bye'])
    await until('nobody to be there', async () => (await mqtt.connections()) === 0)
  })

  test('a client that ends its side without a close frame is disconnected', async () => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('ws'))
    const { _socket: socket } = client.webSocket as unknown as { _socket: Socket }
    socket.end()
    await client.closed()
    await until('nobody to be there', async () => (await mqtt.connections()) === 0)
  })

  test('a client that does not respond to a close frame is cut off', async () => {
    const mqtt = running()
    const client = await RawClient.connect(mqtt.node.url, { allowHalfOpen: true })
    await client.send(head('/mqtt'))
    expect((await client.answer()).status).toBe(101)
    const received = new Promise<string>((resolve) => client.socket.once('data', resolve))
    // PINGREQ before CONNECT.
    await client.send(Buffer.from([0x82, 0x82, 0, 0, 0, 0, 0xc0, 0]))
    expect(Buffer.from(await received, 'latin1').toString('hex')).toBe('880203e8')
    await client.closed
    client.socket.destroy()
  })

  test('a close frame without DISCONNECT leaves the will in force', async () => {
    await using mqtt = await MqttNode.start()
    const will = { topic: 'w', payload: Buffer.from('gone'), qos: 0, retain: false } as const
    const client = await mqtt.connect(mqtt.over('ws'), { will })
    client.webSocket?.close(1000)
    await client.closed()
    await until('the will', async () => (await mqtt.node.metric('inlet_mqtt_wills_total')) === 1)
    expect(await mqtt.stored()).toEqual(['w gone'])
  })

  test('DISCONNECT closes with code 1000', async () => {
    const mqtt = running()
    const client = await mqtt.connect(mqtt.over('ws'))
    client.send({ cmd: 'disconnect' })
    await client.closed()
    expect(client.closeCode).toBe(1000)
  })
})

test('while the node stops, an upgrade gets 503 or no response', async () => {
  await using mqtt = await MqttNode.start()
  const open = await mqtt.connect(mqtt.over('ws', 5))
  const stopping = mqtt.node.stop()
  const late = new WebSocket(`${mqtt.node.url.replace('http', 'ws')}/mqtt`, 'mqtt')
  const outcome = await new Promise((resolve) => {
    late.on('error', () => resolve('refused'))
    late.on('close', () => resolve('closed'))
  })
  expect(['refused', 'closed']).toContain(outcome)
  await stopping
  expect(await open.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8b })
})
