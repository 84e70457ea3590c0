/** CONNECT and CONNACK, §3.1 and §3.2 of MQTT 3.1.1 and 5. */
import type { IConnectPacket } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'
import { accountId, aKey, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { connectPacket, MqttClient, type Over, type Received, type Version } from '../support/mqtt-client.ts'
import { expectEnd, mqttEndpoint, mqttSettings } from '../support/mqtt-node.ts'
import { SteeredFiles } from '../support/steered-files.ts'
import { until } from '../support/until.ts'

const endpoint = mqttEndpoint()
const environment = { INLET_MQTT_LISTEN: '127.0.0.1:0' }
const start = (snapshot: Snapshot = aSnapshot({ endpoints: [endpoint] }), more: Record<string, string> = {}) =>
  IngestNode.start({ snapshot, environment: { ...environment, ...more } })
const portOf = (node: IngestNode) => node.mqttPort ?? 0

/** The CONNACK, or undefined if the connection just closed. A refusal must close it [MQTT-3.2.2-5], [MQTT-3.2.2-7]. */
async function connack(over: Over, packet: Partial<IConnectPacket> = {}): Promise<Received> {
  const { client, connack } = await MqttClient.connect(over, packet)
  if (connack === undefined || connack.returnCode > 0 || connack.reasonCode > 0) await client.closed()
  client.destroy()
  return connack
}

/** Tests one outcome with 3.1.1 and with 5. */
function outcome(
  what: string,
  codes: { readonly 4: number | undefined; readonly 5: number },
  packet: Partial<IConnectPacket>,
  snapshot: Snapshot = aSnapshot({ endpoints: [endpoint] }),
) {
  test.each([4, 5] as const)(`${what}, version %i`, async (version) => {
    await using node = await start(snapshot)
    const answer = await connack({ port: portOf(node), version }, packet)
    if (version === 4) expect(answer?.returnCode).toBe(codes[4])
    else expect(answer.reasonCode).toBe(codes[5])
    // [MQTT-3.2.2-4]: session present is 0 with every refusal.
    expect(answer?.sessionPresent ?? false).toBe(false)
    await until('nobody to be connected', async () => (await node.metric('inlet_mqtt_connections')) === 0)
  })
}

describe('0x00 accepted', () => {
  test.each(['tcp', 'ws'] as const)('3.1.1 over %s: no session is ever present [MQTT-3.2.2-2]', async (transport) => {
    await using node = await start()
    const port = transport === 'tcp' ? portOf(node) : Number(new URL(node.url).port)
    for (const clean of [true, false]) {
      expect(await connack({ port, transport }, { clean })).toMatchObject({
        cmd: 'connack',
        returnCode: 0,
        sessionPresent: false,
      })
    }
  })

  test('CONNACK of 5 has the terms: receive maximum, packet size, aliases, QoS; no subscriptions; session expiry 0', async () => {
    await using node = await start()
    const answer = await connack(
      { port: portOf(node), version: 5 },
      { clean: false, properties: { sessionExpiryInterval: 3_600 } },
    )
    expect(answer).toMatchObject({ reasonCode: 0, sessionPresent: false })
    expect(answer.properties).toEqual({
      receiveMaximum: 2_048,
      maximumPacketSize: 1_066_000,
      maximumQoS: 1,
      topicAliasMaximum: 16,
      sessionExpiryInterval: 0,
      wildcardSubscriptionAvailable: false,
      subscriptionIdentifiersAvailable: false,
      sharedSubscriptionAvailable: false,
    })
  })

  test('an empty client id is replaced by a unique one [MQTT-3.1.3-6], [MQTT-3.1.3-7], [MQTT-3.2.2-16]', async () => {
    await using node = await start()
    const first = await connack({ port: portOf(node), version: 5 }, { clientId: '' })
    const second = await connack({ port: portOf(node), version: 5 }, { clientId: '' })
    expect(first.properties.assignedClientIdentifier).toMatch(/^auto-/)
    expect(second.properties.assignedClientIdentifier).not.toBe(first.properties.assignedClientIdentifier)
    expect((await connack({ port: portOf(node) }, { clientId: '' })).returnCode).toBe(0)
  })

  test.each([
    { asked: 60, told: undefined },
    { asked: 0, told: 300 },
    { asked: 301, told: 300 },
    { asked: 300, told: undefined },
  ])('keep alive $asked is capped, and 5 is told $told [MQTT-3.1.2-21], [MQTT-3.2.2-21]', async ({ asked, told }) => {
    await using node = await start()
    const answer = await connack({ port: portOf(node), version: 5 }, { keepalive: asked })
    expect(answer.properties.serverKeepAlive).toBe(told)
  })

  test('qos_max 0 is announced to 5 as maximum QoS 0 [MQTT-3.2.2-9]', async () => {
    await using node = await start(aSnapshot({ endpoints: [mqttEndpoint({ mqtt_config: { ...mqttSettings, qos_max: 0 } })] }))
    expect((await connack({ port: portOf(node), version: 5 })).properties.maximumQoS).toBe(0)
  })

  test('the user name may be anything, and may be absent in 5 (§3.1.2.9)', async () => {
    await using node = await start()
    expect((await connack({ port: portOf(node) }, { username: '' })).returnCode).toBe(0)
    const key = Buffer.from(secretOf('a'))
    // mqtt-packet cannot write a password without a user name.
    const rest = [Buffer.from([0, 4, 0x4d, 0x51, 0x54, 0x54, 5, 0b0100_0010, 0, 60, 0, 0, 1, 0x63, 0, key.length]), key]
    const client = await MqttClient.open({ port: portOf(node), version: 5 })
    client.sendBytes(Buffer.concat([Buffer.from([0x10, Buffer.concat(rest).length]), ...rest]))
    expect((await client.next()).reasonCode).toBe(0)
    client.destroy()
  })
})

test('a bridge, which sets the top bit of the version, is accepted: that bit only concerns messages to clients', async () => {
  await using node = await start()
  const bridge = { protocolVersion: 4, bridgeMode: true } as Partial<IConnectPacket>
  expect((await connack({ port: portOf(node) }, bridge)).returnCode).toBe(0)
  const { client } = await MqttClient.connect({ port: portOf(node) }, bridge)
  client.publish('x')
  expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 1 })
  client.destroy()
})

describe('0x01, 0x84 unsupported protocol version', () => {
  test('3.1 gets 0x01 [MQTT-3.1.2-2]', async () => {
    await using node = await start()
    const answer = await connack({ port: portOf(node) }, { protocolId: 'MQIsdp', protocolVersion: 3 })
    expect(answer.returnCode).toBe(1)
  })
  test('6 gets 0x84 in a CONNACK of 5 [MQTT-3.1.2-2]', async () => {
    await using node = await start()
    const client = await MqttClient.open({ port: portOf(node), version: 5 })
    client.sendBytes(Buffer.from([0x10, 12, 0, 4, 0x4d, 0x51, 0x54, 0x54, 6, 2, 0, 60, 0, 0]))
    expect((await client.next()).reasonCode).toBe(0x84)
    await client.closed()
  })
  test('another protocol name closes the connection without a CONNACK [MQTT-3.1.2-1]', async () => {
    await using node = await start()
    const client = await MqttClient.open({ port: portOf(node) })
    client.sendBytes(Buffer.from([0x10, 14, 0, 4, 0x4d, 0x51, 0x54, 0x58, 4, 2, 0, 60, 0, 2, 0x61, 0x62]))
    expect((await client.next())?.returnCode ?? 1).toBe(1)
    await client.closed()
  })
})

describe('0x02, 0x85 client identifier not valid', () => {
  outcome('longer than 512 bytes', { 4: 2, 5: 0x85 }, { clientId: 'é'.repeat(257) })
  test('an empty one without a clean session, in 3.1.1 [MQTT-3.1.3-8], [MQTT-3.1.3-9]', async () => {
    await using node = await start()
    const client = await MqttClient.open({ port: portOf(node) })
    // mqtt-packet would not write it.
    const key = Buffer.from(secretOf('a'))
    const rest = Buffer.concat([
      Buffer.from([0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 0b1100_0000, 0, 60, 0, 0, 0, 1, 0x75, 0, key.length]),
      key,
    ])
    client.sendBytes(Buffer.concat([Buffer.from([0x10, rest.length]), rest]))
    expect((await client.next())?.returnCode).toBe(2)
    await client.closed()
  })
})

describe('0x04, 0x86 bad user name or password', () => {
  outcome('a key that nobody has', { 4: 4, 5: 0x86 }, { password: Buffer.from(secretOf('x')) })
  outcome('something that is no key', { 4: 4, 5: 0x86 }, { password: Buffer.from([0xff, 0]) })
  outcome('a user name that is too long', { 4: 4, 5: 0x86 }, { username: 'u'.repeat(513) })
  test('no password', async () => {
    await using node = await start()
    const { password: _, ...open } = connectPacket(4)
    const client = await MqttClient.open({ port: portOf(node) })
    client.send(open)
    expect((await client.next()).returnCode).toBe(4)
    await client.closed()
  })
})

describe('0x05, 0x87 not authorized', () => {
  outcome('mqtt_config is null', { 4: 5, 5: 0x87 }, {}, aSnapshot())
  const disabled = mqttEndpoint({ mqtt_config: { ...mqttSettings, enabled: false } })
  outcome('MQTT is disabled', { 4: 5, 5: 0x87 }, {}, aSnapshot({ endpoints: [disabled] }))
  const keys = [aKey({ scopes: ['metrics', 'admin'] })]
  outcome('a key without the scope ingest', { 4: 5, 5: 0x87 }, {}, aSnapshot({ keys, endpoints: [endpoint] }))
  const others = mqttEndpoint({ account_id: accountId('b') })
  outcome('the account has no endpoint here', { 4: 5, 5: 0x87 }, {}, aSnapshot({ endpoints: [others] }))
  const two = aSnapshot({ endpoints: [endpoint, mqttEndpoint()] })
  const ofNobody = { properties: { userProperties: { endpoint: '&x=1' } } }
  outcome('an endpoint that is no id', { 4: 5, 5: 0x87 }, ofNobody, two)
  outcome('several endpoints and none named', { 4: 5, 5: 0x87 }, {}, two)
  test('lists the endpoints if several could be meant', async () => {
    await using node = await start(two)
    const answer = await connack({ port: portOf(node), version: 5 })
    expect(answer.properties.reasonString).toContain(endpoint.id)
  })
})

describe('0x05, 0x8A banned', () => {
  const suspended = mqttEndpoint({ account_suspended: true })
  outcome('the account is suspended', { 4: 5, 5: 0x8a }, {}, aSnapshot({ endpoints: [suspended] }))
})

describe('0x03, 0x88, 0x89 and 0x97 try again later', () => {
  outcome('the endpoint is paused', { 4: 3, 5: 0x88 }, {}, aSnapshot({ endpoints: [mqttEndpoint({ desired_state: 'paused' })] }))

  test.each([4, 5] as const)('the node has no configuration yet, version %i', async (version) => {
    await using node = await IngestNode.start({ snapshot: undefined, environment })
    const answer = await connack({ port: portOf(node), version })
    expect(answer.returnCode ?? answer.reasonCode).toBe(version === 4 ? 3 : 0x88)
  })

  test.each([4, 5] as const)('the disk has no room, version %i', async (version) => {
    const disk = new SteeredFiles()
    await using node = await IngestNode.start({
      snapshot: aSnapshot({ endpoints: [endpoint] }),
      environment: { ...environment, INLET_DISK_RESERVE_BYTES: '1MiB' },
      files: disk.files,
    })
    disk.freeBytes = 0
    await node.until('/readyz', ({ status }) => status === 503)
    const refused = await connack({ port: portOf(node), version })
    expect(refused.returnCode ?? refused.reasonCode).toBe(version === 4 ? 3 : 0x89)
    disk.freeBytes = undefined
    await node.until('/readyz', ({ status }) => status === 200)
    const accepted = await connack({ port: portOf(node), version })
    expect(accepted.returnCode ?? accepted.reasonCode).toBe(0)
  })

  test.each([4, 5] as const)(
    'max_connections is reached, version %i; taking over one of them is still possible',
    async (version) => {
      const small = mqttEndpoint({ mqtt_config: { ...mqttSettings, max_connections: 2 } })
      await using node = await start(aSnapshot({ endpoints: [small] }))
      const over = { port: portOf(node), version }
      const { client: first } = await MqttClient.connect(over, { clientId: 'one' })
      const { client: second } = await MqttClient.connect(over, { clientId: 'two' })
      const refused = await connack(over, { clientId: 'three' })
      expect(refused.returnCode ?? refused.reasonCode).toBe(version === 4 ? 3 : 0x97)
      const taking = await MqttClient.connect(over, { clientId: 'two' })
      expect(taking.connack.returnCode ?? taking.connack.reasonCode).toBe(0)
      await second.closed()
      expect(await node.metric('inlet_mqtt_connections')).toBe(2)
      // A slot that was released can be used.
      first.destroy()
      await until('a place', async () => (await node.metric('inlet_mqtt_connections')) === 1)
      const third = await MqttClient.connect(over, { clientId: 'three' })
      expect(third.connack.returnCode ?? third.connack.reasonCode).toBe(0)
      for (const client of [taking.client, third.client]) client.destroy()
    },
  )
})

describe('other refusals', () => {
  test('0x8C: there is no enhanced authentication', async () => {
    await using node = await start()
    const answer = await connack({ port: portOf(node), version: 5 }, { properties: { authenticationMethod: 'SCRAM' } })
    expect(answer.reasonCode).toBe(0x8c)
  })
  test('0x82: receive maximum or maximum packet size is 0', async () => {
    await using node = await start()
    for (const properties of [{ receiveMaximum: 0 }, { maximumPacketSize: 0 }]) {
      expect((await connack({ port: portOf(node), version: 5 }, { properties }))?.reasonCode).toBe(0x82)
    }
  })
  test('0x95: the maximum packet size has no room for a CONNACK, so none is sent [MQTT-3.1.2-24], [MQTT-3.1.2-25]', async () => {
    await using node = await start()
    const answer = await connack({ port: portOf(node), version: 5 }, { properties: { maximumPacketSize: 10 } })
    expect(answer).toMatchObject({ reasonCode: 0x95, length: 3 })
  })
  test('a reason string that does not fit is left out [MQTT-3.2.2-19]', async () => {
    await using node = await start()
    const packet = { password: Buffer.from(secretOf('x')), properties: { maximumPacketSize: 20 } }
    expect(await connack({ port: portOf(node), version: 5 }, packet)).toMatchObject({ reasonCode: 0x86, length: 3 })
  })
  test.each([4, 5] as const)('a will above qos_max, or too large, version %i [MQTT-3.2.2-12]', async (version) => {
    await using node = await start(aSnapshot({ endpoints: [mqttEndpoint({ mqtt_config: { ...mqttSettings, qos_max: 0 } })] }))
    const over = { port: portOf(node), version }
    const will = { topic: 'will', payload: Buffer.from('gone'), qos: 1, retain: false } as const
    const code = (answer: Received) => answer?.returnCode ?? answer?.reasonCode
    expect(code(await connack(over, { will }))).toBe(version === 4 ? 5 : 0x9b)
    const large = { ...will, qos: 0, payload: Buffer.alloc(8 * 1024 + 1) } as const
    expect(code(await connack(over, { will: large }))).toBe(version === 4 ? undefined : 0x95)
    expect(code(await connack(over, { will: { ...large, payload: Buffer.alloc(8 * 1024) } }))).toBe(0)
  })
  test('a will and its properties that are too large together', async () => {
    await using node = await start()
    const properties = { userProperties: { p: 'x'.repeat(4_200) } }
    const will = { topic: 'will', payload: Buffer.alloc(4_000), qos: 0, retain: false, properties } as const
    expect((await connack({ port: portOf(node), version: 5 }, { will }))?.reasonCode).toBe(0x95)
  })
  const wildcards = { topic: 'a/#', payload: Buffer.from(''), qos: 0, retain: false } as const
  outcome('a will topic with wildcards', { 4: 5, 5: 0x90 }, { will: wildcards })
  test('a CONNECT longer than 16 KiB closes the connection', async () => {
    await using node = await start()
    expect(await connack({ port: portOf(node) }, { password: Buffer.alloc(16 * 1024) })).toBeUndefined()
  })
  test('a user name with U+0000 or invalid UTF-8 [MQTT-1.5.4-1], [MQTT-1.5.4-2]', async () => {
    await using node = await start()
    expect((await connack({ port: portOf(node), version: 5 }, { username: 'a\0b' }))?.reasonCode).toBe(0x81)
  })
})

describe('0x81, 0x82: a CONNECT that violates the standard', () => {
  const text = (value: string) =>
    Buffer.concat([Buffer.from([value.length >> 8, value.length & 0xff]), Buffer.from(value, 'latin1')])
  const properties = (hex = '') => Buffer.concat([Buffer.from([hex.length / 2]), Buffer.from(hex, 'hex')])
  /** Flags, properties, will and the bytes after them, as written to the wire. */
  async function answerTo(version: Version, flags: number, ...rest: readonly Buffer[]): Promise<Received> {
    await using node = await start()
    const client = await MqttClient.open({ port: portOf(node), version })
    const body = Buffer.concat([text('MQTT'), Buffer.from([version, flags, 0, 60]), ...rest])
    client.sendBytes(Buffer.concat([Buffer.from([0x10, body.length]), body]))
    const answer = await client.next()
    client.destroy()
    return answer
  }
  const key = text(secretOf('a'))
  const will = (more = '') => [properties(more), text('w'), text('gone')]

  test('a password without a user name in 3.1.1 [MQTT-3.1.2-22]', async () => {
    expect(await answerTo(4, 0b0100_0010, text('c'), key)).toBeUndefined()
  })
  test.each([
    ['the reserved flag [MQTT-3.1.2-3]', 0b1100_0011],
    ['QoS of a will without a will [MQTT-3.1.2-11]', 0b1100_1010],
    ['retained will without a will [MQTT-3.1.2-13]', 0b1110_0010],
  ])('%s', async (_, flags) => {
    expect(await answerTo(4, flags, text('c'), text('u'), key)).toBeUndefined()
    expect((await answerTo(5, flags, properties(), text('c'), text('u'), key)).reasonCode).toBe(0x81)
  })
  test('both QoS bits of a will [MQTT-3.1.2-12]', async () => {
    expect(await answerTo(4, 0b1101_1110, text('c'), text('w'), text('gone'), text('u'), key)).toBeUndefined()
    expect((await answerTo(5, 0b1101_1110, properties(), text('c'), ...will(), text('u'), key)).reasonCode).toBe(0x81)
  })
  test.each([
    ['a property that CONNECT has not (server keep alive)', '13003c', '', 0x81],
    ['an unknown property', '7f', '', 0x81],
    ['a property twice', '210005210005', '', 0x82],
    ['a property cut short', '2100', '', 0x81],
    ['a property of a will in CONNECT', '1800000001', '', 0x81],
    ['a property of CONNECT in a will', '', '210005', 0x81],
    ['a content type of a will that is not UTF-8 [MQTT-1.5.4-1]', '', '030002c328', 0x81],
    ['a user property of a will that is not UTF-8 [MQTT-1.5.4-1]', '', '260001610001ff', 0x81],
    ['a user property with U+0000 [MQTT-1.5.4-2]', '26000161000100', '', 0x81],
    ['no violation', '210005260001610000', '18000000010100', 0],
  ])('%s', async (_, inConnect, inWill, code) => {
    const answer = await answerTo(5, 0b1100_0110, properties(inConnect), text('c'), ...will(inWill), text('u'), key)
    expect(answer.reasonCode).toBe(code)
  })
})

describe('a second connection with the same client id', () => {
  test.each([4, 5] as const)('takes over: the first one is closed [MQTT-3.1.4-3], version %i', async (version) => {
    await using node = await start()
    const over = { port: portOf(node), version }
    const { client: first } = await MqttClient.connect(over)
    const { client: second, connack } = await MqttClient.connect(over)
    expect(connack.sessionPresent).toBe(false)
    if (version === 5) expect(await first.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8e })
    expect(await first.next()).toBeUndefined()
    second.publish('{}')
    expect(await second.next()).toMatchObject({ cmd: 'puback', messageId: 1 })
    expect(await node.metric('inlet_mqtt_connections')).toBe(1)
    second.destroy()
    await until('nobody to be connected', async () => (await node.metric('inlet_mqtt_connections')) === 0)
  })

  test('takes over across transports; a client with this id on another endpoint stays', async () => {
    const other = mqttEndpoint()
    await using node = await start(aSnapshot({ endpoints: [endpoint, other] }))
    const ws = { port: Number(new URL(node.url).port), transport: 'ws', version: 5 } as const
    const named = (id: string) => ({ properties: { userProperties: { endpoint: id } } })
    const { client: stays } = await MqttClient.connect({ port: portOf(node), version: 5 }, named(other.id))
    const { client: goes } = await MqttClient.connect({ port: portOf(node), version: 5 }, named(endpoint.id))
    const { client: takes } = await MqttClient.connect(ws, named(endpoint.id.toUpperCase()))
    expect(await goes.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8e })
    stays.send({ cmd: 'pingreq' })
    expect(await stays.next()).toMatchObject({ cmd: 'pingresp' })
    expect(await node.metric('inlet_mqtt_connections')).toBe(2)
    for (const client of [stays, takes]) client.destroy()
  })
})

test.each<Version>([4, 5])(
  'a revoked key ends its open connections without their wills, and is refused; MQTT version %i',
  async (version) => {
    const secret = secretOf('b')
    await using node = await start(aSnapshot({ keys: [aKey(), aKey({ secret })], endpoints: [endpoint] }))
    const over = { port: portOf(node), version }
    const will = { topic: 'will', payload: Buffer.from('{}'), qos: 0 as const, retain: false }
    const { client: stays } = await MqttClient.connect(over, { clientId: 'stays' })
    const { client: goes } = await MqttClient.connect(over, { clientId: 'goes', password: Buffer.from(secret), will })
    await node.publish(aSnapshot({ epoch: 2, endpoints: [endpoint] }))
    await expectEnd(goes, 0x87)
    stays.publish('{}')
    expect(await stays.next()).toMatchObject({ cmd: 'puback' })
    const refused = await connack(over, { clientId: 'another', password: Buffer.from(secret) })
    expect(refused.returnCode ?? refused.reasonCode).toBe(version === 4 ? 4 : 0x86)
    stays.destroy()
    expect(await node.frames(endpoint.id)).toEqual([expect.objectContaining({ client_id: 'stays' })])
  },
)

test('connections of a revoked key stay until they next authenticate, and end once its access ends', async () => {
  const secret = secretOf('b')
  const revokedKey = aKey({ secret })
  await using node = await start(aSnapshot({ keys: [aKey(), revokedKey], endpoints: [endpoint] }))
  const over = { port: portOf(node), version: 5 as Version }
  const password = Buffer.from(secret)
  const { client: stays } = await MqttClient.connect(over, { clientId: 'stays', password })
  const isServed = async (message: string) => {
    stays.publish(message)
    expect(await stays.next()).toMatchObject({ cmd: 'puback', reasonCode: 0 })
  }
  const revokedUntil = (tokens_until: string | null) => [{ id: revokedKey.id, tokens_until }]
  await node.publish(aSnapshot({ epoch: 2, endpoints: [endpoint], revoked_keys: revokedUntil('2026-11-20T08:15:00.000Z') }))
  await isServed('{"n":1}')
  // One that takes over its client id has to authenticate, and does not end it.
  expect(await connack(over, { clientId: 'stays', password })).toMatchObject({ reasonCode: 0x86 })
  // Control tells of a revoked key for two hours. The connection knows more.
  await node.publish(aSnapshot({ epoch: 3, endpoints: [endpoint] }))
  await isServed('{"n":2}')
  await node.publish(aSnapshot({ epoch: 4, endpoints: [endpoint], revoked_keys: revokedUntil(null) }))
  await expectEnd(stays, 0x87)
  expect(await node.frames(endpoint.id)).toHaveLength(2)
})

describe('an endpoint that stops accepting MQTT', () => {
  test.each([
    ['paused', { desired_state: 'paused' }],
    ['disabled', { mqtt_config: { ...mqttSettings, enabled: false } }],
    ['without mqtt_config', { mqtt_config: null }],
    ['deleted', { desired_state: 'draining' }],
    ['of a suspended account', { account_suspended: true, account_id: accountId('b') }],
  ] as const)('%s: its connections end with 0x98, those of other endpoints stay', async (_, change) => {
    const other = mqttEndpoint()
    await using node = await start(aSnapshot({ endpoints: [endpoint, other] }))
    const over = { port: portOf(node), version: 5 as Version }
    const named = (id: string) => ({ properties: { userProperties: { endpoint: id } } })
    const { client: first } = await MqttClient.connect(over, { ...named(endpoint.id), clientId: 'a' })
    const { client: second } = await MqttClient.connect(over, { ...named(endpoint.id), clientId: 'b' })
    const { client: stays } = await MqttClient.connect(over, named(other.id))
    await node.publish(aSnapshot({ epoch: 2, endpoints: [{ ...endpoint, ...change }, other] }))
    for (const client of [first, second]) {
      expect(await client.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x98 })
      await client.closed()
    }
    stays.publish('{}')
    expect(await stays.next()).toMatchObject({ cmd: 'puback' })
    expect(await node.metric('inlet_mqtt_connections')).toBe(1)
    stays.destroy()
  })
})

describe('the endpoint is found', () => {
  const hosted = mqttEndpoint({ ingest_host: 'abc.loc.inlet.test' })
  const other = mqttEndpoint({ ingest_host: 'def.loc.inlet.test' })
  const foreign = mqttEndpoint({ ingest_host: 'xyz.loc.inlet.test', account_id: accountId('b') })
  const snapshot = aSnapshot({ endpoints: [hosted, other, foreign] })

  const isAt = async (node: IngestNode, over: Over, packet: Partial<IConnectPacket>, wanted: SnapshotEndpoint) => {
    const { client, connack } = await MqttClient.connect(over, packet)
    expect(connack.returnCode ?? connack.reasonCode).toBe(0)
    client.publish('{"here":1}')
    expect(await client.next()).toMatchObject({ cmd: 'puback' })
    client.destroy()
    expect(await node.stored(wanted.id)).toHaveLength(1)
  }
  const ws = (node: IngestNode, more: Partial<Over> = {}): Over => ({
    port: Number(new URL(node.url).port),
    transport: 'ws',
    ...more,
  })

  test('by the Host header of the WebSocket request', async () => {
    await using node = await start(snapshot)
    await isAt(node, ws(node, { headers: { host: 'def.loc.inlet.test:443' } }), {}, other)
  })
  test('by ?endpoint=, which wins over the user property', async () => {
    await using node = await start(snapshot)
    const packet = { properties: { userProperties: { endpoint: hosted.id } } }
    await isAt(node, ws(node, { path: `/mqtt?endpoint=${other.id}`, version: 5 }), packet, other)
  })
  test('by the user property `endpoint` in CONNECT of 5', async () => {
    await using node = await start(snapshot)
    const packet = { properties: { userProperties: { endpoint: hosted.id } } }
    await isAt(node, { port: portOf(node), version: 5 }, packet, hosted)
  })
  test('by the server name of the TLS handshake; without one by the account', async () => {
    const tls = {
      INLET_TLS_CERTIFICATE_FILE: new URL('../fixtures/tls/first.crt', import.meta.url).pathname,
      INLET_TLS_KEY_FILE: new URL('../fixtures/tls/first.key', import.meta.url).pathname,
    }
    await using node = await start(snapshot, tls)
    const over = { port: portOf(node), transport: 'tls', version: 5 } as const
    expect((await connack(over)).reasonCode).toBe(0x87)
    expect((await connack({ ...over, servername: 'nobody.loc.inlet.test' })).reasonCode).toBe(0x87)
    await isAt(node, { ...over, servername: 'def.loc.inlet.test' }, {}, other)
  })

  const refusals: readonly (readonly [string, (node: IngestNode) => Over, Partial<IConnectPacket>])[] = [
    ['another account’s, by host', (node) => ws(node, { headers: { host: 'xyz.loc.inlet.test' } }), {}],
    ['another account’s, by query', (node) => ws(node, { path: `/mqtt?endpoint=${foreign.id}` }), {}],
    ['an unknown host', (node) => ws(node, { headers: { host: 'no.loc.inlet.test' } }), {}],
    ['an unknown endpoint', (node) => ws(node, { path: `/mqtt?endpoint=${newId()}` }), {}],
    ['another parameter', (node) => ws(node, { path: '/mqtt?endpiont=x' }), {}],
    [
      'two of them named',
      (node) => ({ port: portOf(node), version: 5 }),
      { properties: { userProperties: { endpoint: [hosted.id, other.id] } } },
    ],
  ]
  test('another account’s and an unknown one get the same CONNACK', async () => {
    await using node = await start(snapshot)
    const unknown = newId()
    const told = async (name: string, over: Over) =>
      JSON.stringify(await connack({ ...over, version: 5 }, {})).replaceAll(name, '<name>')
    const byQuery = (id: string) => told(id, ws(node, { path: `/mqtt?endpoint=${id}` }))
    const byHost = (host: string) => told(host, ws(node, { headers: { host } }))
    expect(await byQuery(foreign.id)).toBe(await byQuery(unknown))
    expect(await byHost('xyz.loc.inlet.test')).toBe(await byHost('no1.loc.inlet.test'))
  })

  test.each(refusals)('%s is refused with 0x05 or 0x87 and a reason', async (_, over, packet) => {
    await using node = await start(snapshot)
    const answer = await connack({ ...over(node), version: 5 }, packet)
    expect(answer.reasonCode).toBe(0x87)
    expect(answer.properties.reasonString.length).toBeGreaterThan(10)
    if (packet.properties === undefined) expect((await connack({ ...over(node), version: 4 }, packet)).returnCode).toBe(5)
  })
})
