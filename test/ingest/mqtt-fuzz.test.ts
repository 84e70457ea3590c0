/** Malformed packets sent to live sessions: no crash, no hang, no acknowledgement of a message that was not stored, no leak. */
import { randomInt } from 'node:crypto'
import { generate, type Packet } from 'mqtt-packet'
import { expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { seededRandom } from '#lib/random.ts'
import { connectPacket, MqttClient, type Version } from '../support/mqtt-client.ts'
import { MqttNode, mqttEndpoint, mqttSettings } from '../support/mqtt-node.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const seed = Number(process.env['INLET_TEST_SEED'] ?? randomInt(2 ** 31))
const connections = runs(200, 400)
const packetsEach = 30

type Random = {
  below(bound: number): number
  chance(share: number): boolean
  bytes(most: number): Buffer
  of<T>(values: readonly T[]): T
}

function randomOf(next: () => number): Random {
  const below = (bound: number) => Math.floor(next() * bound)
  return {
    below,
    chance: (share) => next() < share,
    bytes: (most) => Buffer.from(Array.from({ length: below(most + 1) }, () => below(256))),
    of: (values) => values[below(values.length)] as never,
  }
}

/** A random packet of a client: valid, but not necessarily allowed at this point. */
function anyPacket(random: Random, version: Version): Packet {
  const messageId = 1 + random.below(65_535)
  const userProperties = { a: 'b', c: ['d', 'e'] }
  const five = (properties: object) => (version === 5 ? { properties } : {})
  return random.of([
    () => ({
      cmd: 'publish',
      topic: random.of(['a', 'a/b', 'ä', 'x'.repeat(900)]),
      payload: random.bytes(300),
      qos: random.below(2),
      dup: false,
      retain: random.chance(0.5),
      messageId,
      ...five({ userProperties, contentType: 'x', topicAlias: 1 + random.below(16) }),
    }),
    () => ({ cmd: 'subscribe', messageId, subscriptions: [{ topic: '#', qos: 1 }], ...five({ userProperties }) }),
    () => ({ cmd: 'unsubscribe', messageId, unsubscriptions: ['a', 'b'] }),
    () => ({ cmd: 'pingreq' }),
    () => ({ cmd: 'puback', messageId }),
    () => ({ cmd: 'pubrel', messageId }),
    () => ({ cmd: 'disconnect', ...(version === 5 ? { reasonCode: 4 } : {}) }),
    () => connectPacket(version, { clientId: 'again', will: { topic: 'w', payload: Buffer.from('w'), qos: 1, retain: false } }),
  ])() as Packet
}

function mutate(random: Random, packet: Buffer): Buffer {
  const bytes = Buffer.from(packet)
  const at = random.below(bytes.length)
  return random.of([
    () => {
      bytes[at] = random.below(256)
      return bytes
    },
    () => {
      bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8))
      return bytes
    },
    () => bytes.subarray(0, at),
    () => Buffer.concat([bytes.subarray(0, at), random.bytes(20), bytes.subarray(at)]),
    () => Buffer.concat([bytes.subarray(at), bytes]),
    () => random.bytes(200),
  ])()
}

async function run(mqtt: MqttNode, random: Random, index: number, acknowledged: Set<string>): Promise<number> {
  const version = random.of([4, 5] as const)
  const transport = random.of(['tcp', 'ws'] as const)
  const client = await MqttClient.open(mqtt.over(transport, version))
  const connectBytes = generate(connectPacket(version, { clientId: `fuzz-${index}` }), { protocolVersion: version })
  const isConnected = random.chance(0.8)
  client.sendBytes(isConnected ? connectBytes : mutate(random, connectBytes))
  // Up to the first malformed byte, each acknowledgement belongs to a known message.
  const soundCount = random.below(10)
  const isPatient = random.chance(0.5)
  for (let step = 0; step < packetsEach && !client.isClosed; step += 1) {
    // Half of them wait for a response before they send malformed packets.
    for (let turn = 0; isPatient && step === soundCount && turn < 200 && client.waiting <= soundCount; turn += 1)
      await new Promise(setImmediate)
    if (step < soundCount || random.chance(0.3)) {
      client.publish(`${index}-${step}`, { messageId: step + 1, topic: 'sound' })
    } else if (random.chance(0.6)) {
      const bytes = generate(anyPacket(random, version), { protocolVersion: version })
      client.sendBytes(random.chance(0.7) ? mutate(random, bytes) : bytes)
    } else if (transport === 'ws' && random.chance(0.05)) {
      const { _socket: socket } = client.webSocket as unknown as { _socket: { write(bytes: Buffer): void } }
      socket.write(random.bytes(100))
    }
    if (random.chance(0.2)) await new Promise(setImmediate)
  }
  if (random.chance(0.5)) client.socket?.end()
  let pubacks = 0
  const take = (packet: { cmd?: string; messageId?: number }) => {
    if (packet.cmd !== 'puback') return
    // In the order in which they were sent.
    if (pubacks < soundCount && isConnected) {
      expect(packet.messageId).toBe(pubacks + 1)
      acknowledged.add(`sound ${index}-${pubacks}`)
    }
    pubacks += 1
  }
  // The last packet gets a response, or the node has ended the connection, or it waits for the rest of a packet.
  for (let quiet = 0; quiet < 3 && !client.isClosed; ) {
    const packet = await client.next(20).catch(() => 'quiet' as const)
    if (packet === 'quiet') quiet += 1
    else if (packet !== undefined) take(packet)
  }
  while (client.waiting > 0) take(await client.next())
  client.destroy()
  return pubacks
}

test(`seed ${seed}: ${connections} connections with malformed packets`, { timeout: 120_000 }, async () => {
  process.stdout.write(`INLET_TEST_SEED=${seed}\n`)
  const random = randomOf(seededRandom(seed).fraction)
  const endpoint = mqttEndpoint({ mqtt_config: { ...mqttSettings, max_connections: 100 } })
  await using mqtt = await MqttNode.start({ endpoint })
  const before = process.memoryUsage.rss()
  const acknowledged = new Set<string>()
  let pubacks = 0
  for (let index = 0; index < connections; index += 40) {
    const batch = Array.from({ length: 40 }, (_, more) => run(mqtt, random, index + more, acknowledged))
    for (const count of await Promise.all(batch)) pubacks += count
  }
  // The node still serves other clients.
  const client = await mqtt.connect(mqtt.over('tcp', 5))
  client.publish('after', { topic: 'sound' })
  expect(await client.next()).toMatchObject({ cmd: 'puback' })
  client.destroy()
  await until('nobody to be left', async () => (await mqtt.connections()) === 0)
  await until('no byte to be left', async () => (await mqtt.node.metric('inlet_ingest_in_flight_bytes')) === 0)
  expect(process.memoryUsage.rss() - before).toBeLessThan(300 * MiB)
  const stored = await mqtt.stored()
  expect(acknowledged.size).toBeGreaterThan(100)
  const known = new Set(stored)
  expect([...acknowledged].filter((message) => !known.has(message))).toEqual([])
  expect(stored.length).toBeGreaterThanOrEqual(pubacks + 1)
})
