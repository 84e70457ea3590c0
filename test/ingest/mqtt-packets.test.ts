/** All packets except CONNECT and PUBLISH: responses, and violations that end the connection. */
import { generate, type Packet } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import { connectPacket } from '../support/mqtt-client.ts'
import { expectEnd, MqttNode, useMqttNode } from '../support/mqtt-node.ts'
import { until } from '../support/until.ts'

const versions = [4, 5] as const
const subscriptions = [
  { topic: 'a', qos: 0 },
  { topic: '#', qos: 1 },
] as const

/** Its tests only look at what it responds. */
const running = useMqttNode()

describe('SUBSCRIBE', () => {
  test.each(versions)('gets a failure for each filter, in order [MQTT-3.8.4-5], [MQTT-3.8.4-6], version %i', async (version) => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('tcp', version))
    client.send({ cmd: 'subscribe', messageId: 7, subscriptions } as unknown as Packet)
    const code = version === 4 ? 0x80 : 0x83
    const answer = await client.next()
    expect(answer).toMatchObject({ cmd: 'suback', messageId: 7, granted: [code, code] })
    if (version === 5) expect(answer.properties.reasonString).toContain('delivers none')
    // The connection stays open.
    client.publish('x')
    expect(await client.next()).toMatchObject({ cmd: 'puback' })
  })
  test('has a reason string only if the client wants it [MQTT-3.1.2-29] and the packet has room for it [MQTT-3.9.2-1]', async () => {
    const mqtt = running()
    const quiet = { requestProblemInformation: false }
    for (const properties of [quiet, { maximumPacketSize: 60 }]) {
      const client = await mqtt.connect(mqtt.over('tcp', 5), { properties })
      client.send({ cmd: 'subscribe', messageId: 7, subscriptions } as unknown as Packet)
      const answer = await client.next()
      expect(answer.granted).toEqual([0x83, 0x83])
      expect(answer.properties?.reasonString).toBeUndefined()
    }
  })
})

test.each(versions)(
  'SUBSCRIBE with 10 000 filters gets 10 000 failures; one longer than 64 KiB 0x95, version %i',
  async (version) => {
    const mqtt = running()
    const client = await mqtt.connect(mqtt.over('tcp', version))
    const many = (count: number) => {
      const list = Array.from({ length: count }, () => ({ topic: 'a', qos: 0 }))
      client.send({ cmd: 'subscribe', messageId: 7, subscriptions: list } as unknown as Packet)
    }
    many(10_000)
    expect((await client.next()).granted).toHaveLength(10_000)
    many(17_000)
    await expectEnd(client, 0x95)
  },
)

test('DISCONNECT must not set a session expiry that CONNECT did not set (§3.14.2.2.2): 0x82, and the will is published', async () => {
  await using mqtt = await MqttNode.start()
  const will = { topic: 'w', payload: Buffer.from('gone'), qos: 0, retain: false } as const
  const leave = { cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 60 } } as const
  const client = await mqtt.connect(mqtt.over('tcp', 5), { will })
  client.send(leave)
  await expectEnd(client, 0x82)
  const properties = { sessionExpiryInterval: 60 }
  const other = await mqtt.connect(mqtt.over('tcp', 5), { will, properties, clientId: 'other' })
  other.send(leave)
  expect(await other.next()).toBeUndefined()
  expect(await mqtt.stored()).toEqual(['w gone'])
})

test.each(versions)('UNSUBSCRIBE gets UNSUBACK [MQTT-3.10.4-4], [MQTT-3.11.3-1], version %i', async (version) => {
  const mqtt = running()
  const client = await mqtt.connect(mqtt.over('tcp', version))
  client.send({ cmd: 'unsubscribe', messageId: 8, unsubscriptions: ['a', 'b'] })
  const answer = await client.next()
  expect(answer).toMatchObject({ cmd: 'unsuback', messageId: 8 })
  if (version === 5) expect(answer.granted).toEqual([0x11, 0x11])
})

test.each(versions)('PINGREQ gets PINGRESP [MQTT-3.12.4-1], version %i', async (version) => {
  const mqtt = running()
  const client = await mqtt.connect(mqtt.over('tcp', version))
  client.send({ cmd: 'pingreq' }, { cmd: 'pingreq' })
  expect(await client.next()).toMatchObject({ cmd: 'pingresp' })
  expect(await client.next()).toMatchObject({ cmd: 'pingresp' })
})

test.each(versions)(
  'DISCONNECT ends the connection, and packets after it are ignored [MQTT-3.14.4-1], [MQTT-3.14.4-2], version %i',
  async (version) => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('tcp', version))
    const late = generate(
      { cmd: 'publish', topic: 't', payload: 'late', qos: 0, dup: false, retain: false },
      { protocolVersion: version },
    )
    client.sendBytes(Buffer.concat([generate({ cmd: 'disconnect' }, { protocolVersion: version }), late]))
    expect(await client.next()).toBeUndefined()
    expect(await mqtt.stored()).toEqual([])
  },
)

describe('a will', () => {
  const will = { topic: 'wills/7', payload: Buffer.from('gone'), qos: 1, retain: true } as const

  test.each(versions)('becomes a record if the connection is lost [MQTT-3.1.2-8], version %i', async (version) => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('tcp', version), { will })
    client.publish('here')
    await client.next()
    client.destroy()
    await until('the will', async () => (await mqtt.node.metric('inlet_mqtt_wills_total')) === 1)
    expect(await mqtt.stored()).toEqual(['plant/7 here', 'wills/7 gone'])
  })
  test.each(versions)('is dropped by DISCONNECT [MQTT-3.1.2-10], [MQTT-3.14.4-3], version %i', async (version) => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('tcp', version), { will })
    client.send({ cmd: 'disconnect' })
    await client.closed()
    expect(await mqtt.stored()).toEqual([])
  })
  test.each([0x04, 0x80, 0x81])('becomes a record after DISCONNECT of 5 with reason %i', async (reasonCode) => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('tcp', 5), { will })
    client.send({ cmd: 'disconnect', reasonCode })
    await client.closed()
    expect(await mqtt.stored()).toEqual(['wills/7 gone'])
  })
  test('becomes a record on an error, a takeover, or a stop of the node', async () => {
    await using mqtt = await MqttNode.start()
    const broken = await mqtt.connect(mqtt.over('tcp', 5), { clientId: 'a', will })
    broken.publish('no', { qos: 2 })
    await expectEnd(broken, 0x9b)
    const taken = await mqtt.connect(mqtt.over('ws', 5), { clientId: 'b', will: { ...will, payload: Buffer.from('taken') } })
    await mqtt.connect(mqtt.over('ws', 5), { clientId: 'b', will: { ...will, payload: Buffer.from('stopped') } })
    await expectEnd(taken, 0x8e)
    expect(await mqtt.stored()).toEqual(['wills/7 gone', 'wills/7 taken', 'wills/7 stopped'])
  })
  test('keeps its content type and user properties', async () => {
    await using mqtt = await MqttNode.start()
    const properties = { contentType: 'text/plain', userProperties: { site: ['a', 'b'] }, willDelayInterval: 60 }
    const client = await mqtt.connect(mqtt.over('tcp', 5), { will: { ...will, properties } as never })
    client.destroy()
    await until('the will', async () => (await mqtt.node.metric('inlet_mqtt_wills_total')) === 1)
    const [frame] = await mqtt.node.frames(mqtt.endpoint.id)
    expect(frame).toMatchObject({
      content_type: 'text/plain',
      user_properties: { site: ['a', 'b'] },
    })
  })
})

describe('protocol violations', () => {
  const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

  test.each(versions)('a second CONNECT: 0x82 [MQTT-3.1.0-2], version %i', async (version) => {
    const mqtt = running()
    const client = await mqtt.connect(mqtt.over('tcp', version))
    client.send(connectPacket(version))
    await expectEnd(client, 0x82)
  })

  test.each([
    ['PUBLISH', '30 03 00 01 61'],
    ['PINGREQ', 'c0 00'],
    ['DISCONNECT', 'e0 00'],
    ['nonsense', 'ff ff ff ff ff'],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n').toString('hex')],
    ['a CONNECT without anything', '10 00'],
  ])('%s instead of CONNECT ends the connection [MQTT-3.1.0-1]', async (_, bytes) => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.open(mqtt.over('tcp'))
    client.sendBytes(hex(bytes))
    expect(await client.next()).toBeUndefined()
    expect(await mqtt.stored()).toEqual([])
  })

  // The same for both versions, unless the packet does not exist in one of them.
  const broken: readonly (readonly [what: string, bytes: string, code: number, only?: 4 | 5])[] = [
    ['packet type 0', '00 00', 0x81],
    ['PUBACK without a PUBLISH of the server', '40 02 00 01', 0x82],
    ['PUBREC', '50 02 00 01', 0x82],
    ['PUBREL', '62 02 00 01', 0x82],
    ['PUBCOMP', '70 02 00 01', 0x82],
    ['CONNACK', '20 02 00 00', 0x82, 4],
    ['PINGRESP', 'd0 00', 0x82],
    ['PINGREQ with flags [MQTT-2.2.2-2]', 'c1 00', 0x81],
    ['PINGREQ with something in it', 'c0 01 00', 0x81],
    ['DISCONNECT with something in it', 'e0 01 00', 0x81, 4],
    ['SUBSCRIBE with other flags [MQTT-3.8.1-1]', '80 06 00 01 00 01 61 00', 0x81],
    ['SUBSCRIBE without a filter [MQTT-3.8.3-3]', '82 02 00 01', 0x81, 4],
    ['SUBSCRIBE with packet identifier 0 [MQTT-2.3.1-1]', '82 06 00 00 00 01 61 00', 0x81, 4],
    ['SUBSCRIBE cut short', '82 05 00 01 00 01 61', 0x81, 4],
    ['SUBSCRIBE with QoS 3 [MQTT-3.8.3-4]', '82 06 00 01 00 01 61 03', 0x81, 4],
    ['UNSUBSCRIBE with other flags [MQTT-3.10.1-1]', 'a0 05 00 01 00 01 61', 0x81],
    ['UNSUBSCRIBE without a filter [MQTT-3.10.3-2]', 'a2 02 00 01', 0x81, 4],
    ['DISCONNECT with flags [MQTT-3.14.1-1]', 'e1 00', 0x81],
    ['AUTH, in 3.1.1', 'f0 00', 0x81, 4],
    ['AUTH, in 5', 'f0 00', 0x82, 5],
    ['AUTH with flags [MQTT-3.15.1-1]', 'f1 00', 0x81, 5],
    ['both QoS bits [MQTT-3.3.1-4]', '36 05 00 01 61 00 01', 0x81],
    ['DUP with QoS 0 [MQTT-3.3.1-2]', '38 03 00 01 61', 0x81],
    ['packet identifier 0 [MQTT-2.3.1-1]', '32 05 00 01 61 00 00', 0x81, 4],
    ['packet identifier 0 [MQTT-2.2.1-3]', '32 06 00 01 61 00 00 00', 0x81, 5],
    ['no topic field', '30 00', 0x81],
    ['a topic longer than its packet', '30 03 00 09 61', 0x81],
    ['a topic that is not UTF-8 [MQTT-1.5.3-1], [MQTT-1.5.4-1]', '30 04 00 02 c3 28', 0x81],
    ['a topic with a surrogate [MQTT-1.5.4-1]', '30 05 00 03 ed a0 80', 0x81],
    ['a topic with U+0000 [MQTT-4.7.3-2]', '30 05 00 03 61 00 62', 0x81, 4],
    ['an empty topic [MQTT-4.7.3-1]', '30 02 00 00', 0x90, 4],
    ['properties longer than their packet', '30 04 00 01 61 05', 0x81, 5],
    ['a length of properties that never ends', '30 08 00 01 61 ff ff ff ff 01', 0x81, 5],
    ['a property that no message has (§2.2.2.2)', '30 06 00 01 61 02 11 00', 0x81, 5],
    ['a subscription identifier [MQTT-3.3.4-6]', '30 06 00 01 61 02 0b 01', 0x82, 5],
    ['a payload format of 2', '30 06 00 01 61 02 01 02', 0x81, 5],
    ['a response topic with wildcards [MQTT-3.3.2-14]', '30 08 00 01 61 04 08 00 01 23', 0x82, 5],
    ['a length of five bytes (§1.5.5)', '30 ff ff ff ff 01', 0x81],
    ['a packet longer than the largest message', '30 ff ff ff 7f', 0x95],
    ['1 066 001 bytes', '30 8d 88 41', 0x95],
  ]
  const cases = broken.flatMap(([what, bytes, code, only]) =>
    (only === undefined ? versions : [only]).map((version) => ({ what, bytes, code, version })),
  )
  test.each(cases)('$what, version $version', async ({ bytes, code, version }) => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('tcp', version))
    client.sendBytes(hex(bytes))
    await expectEnd(client, code)
    expect(await mqtt.connections()).toBe(0)
    expect(await mqtt.stored()).toEqual([])
  })

  test('messages before it are stored, acknowledged or not', async () => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('tcp'))
    const good = generate({ cmd: 'publish', topic: 't', payload: 'good', qos: 1, messageId: 1, dup: false, retain: false })
    client.sendBytes(Buffer.concat([good, hex('00 00'), good]))
    await client.closed()
    expect(await mqtt.stored()).toEqual(['t good'])
  })
})

describe('packets and the network', () => {
  test.each(['tcp', 'ws'] as const)('byte by byte, and all at once, over %s [MQTT-6.0.0-2]', async (transport) => {
    await using mqtt = await MqttNode.start()
    const one = (id: number) =>
      generate({ cmd: 'publish', topic: 't', payload: `${id}`, qos: 1, messageId: id, dup: false, retain: false })
    const client = await mqtt.open(mqtt.over(transport))
    const all = Buffer.concat([generate(connectPacket(4)), one(1), one(2)])
    for (const byte of all) client.sendBytes(Buffer.from([byte]))
    expect(await client.next()).toMatchObject({ cmd: 'connack', returnCode: 0 })
    for (const messageId of [1, 2]) expect(await client.next()).toMatchObject({ cmd: 'puback', messageId })
    // PUBLISH need not wait for CONNACK (§3.1.4).
    const eager = await mqtt.open(mqtt.over(transport))
    eager.sendBytes(Buffer.concat([generate(connectPacket(4, { clientId: 'eager' })), one(3), one(4)]))
    expect(await eager.next()).toMatchObject({ cmd: 'connack', returnCode: 0 })
    for (const messageId of [3, 4]) expect(await eager.next()).toMatchObject({ cmd: 'puback', messageId })
    expect(await mqtt.stored()).toEqual(['t 1', 't 2', 't 3', 't 4'])
  })

  test('ends the connection when the client ends its side', async () => {
    await using mqtt = await MqttNode.start()
    const client = await mqtt.connect(mqtt.over('tcp'))
    client.socket?.end()
    await client.closed()
    await until('nobody to be there', async () => (await mqtt.connections()) === 0)
    const metrics = await (await fetch(`${mqtt.node.url}/metrics`)).text()
    expect(metrics).toContain('inlet_mqtt_ends_total{reason="lost",process="ingest"} 1')
  })
})
