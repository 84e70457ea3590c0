/** Real MQTT clients work as documented in their manuals. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import mqtt from 'mqtt'
import { describe, expect, test } from 'vitest'
import { secretOf } from '../support/ingest-node.ts'
import { MqttNode, mqttEndpoint, mqttSettings } from '../support/mqtt-node.ts'
import { until } from '../support/until.ts'

const fixture = (name: string) => join(import.meta.dirname, '../fixtures/tls', name)
const certificate = { INLET_TLS_CERTIFICATE_FILE: fixture('first.crt'), INLET_TLS_KEY_FILE: fixture('first.key') }

type Scheme = 'mqtt' | 'mqtts' | 'ws' | 'wss'
const isSecure = (scheme: Scheme) => scheme === 'mqtts' || scheme === 'wss'

function start(scheme: Scheme, more: Parameters<typeof MqttNode.start>[0] = {}): Promise<MqttNode> {
  return MqttNode.start({ ...more, environment: isSecure(scheme) ? certificate : {} })
}

function urlOf(node: MqttNode, scheme: Scheme): string {
  return scheme.startsWith('mqtt')
    ? `${scheme}://localhost:${node.node.mqttPort}`
    : `${scheme}://localhost:${new URL(node.node.url).port}/mqtt`
}

describe('npm mqtt', () => {
  const cases = (['mqtt', 'mqtts', 'ws', 'wss'] as const).flatMap((scheme) =>
    ([4, 5] as const).map((protocolVersion) => ({ scheme, protocolVersion })),
  )
  test.each(cases)('over $scheme, version $protocolVersion', async ({ scheme, protocolVersion }) => {
    await using node = await start(scheme)
    const client = await mqtt.connectAsync(urlOf(node, scheme), {
      protocolVersion,
      clientId: 'js',
      username: 'anybody',
      password: secretOf('a'),
      reconnectPeriod: 0,
      ca: [readFileSync(fixture('first.crt'))],
    })
    await client.publishAsync('plant/1', '{"qos":0}')
    await Promise.all(
      Array.from({ length: 300 }, (_, index) => client.publishAsync(`plant/${index}`, `{"n":${index}}`, { qos: 1 })),
    )
    const large = `"${'x'.repeat(1024 * 1024 - 2)}"`
    await client.publishAsync('plant/large', large, { qos: 1, retain: true })
    // SUBACK refuses, because no message is ever delivered.
    const granted = await client.subscribeAsync('plant/#', { qos: 1 }).catch((error: Error) => error)
    expect(granted instanceof Error || granted.every(({ qos }) => qos >= 0x80)).toBe(true)
    await client.endAsync()
    const stored = await node.stored()
    expect(stored).toHaveLength(302)
    expect(stored[0]).toBe('plant/1 {"qos":0}')
    expect(stored[301]).toBe(`plant/large ${large}`)
    expect(new Set(stored).size).toBe(302)
  })

  test('message properties of MQTT 5 are stored; automatic topic aliases work', async () => {
    await using node = await start('mqtt')
    const client = await mqtt.connectAsync(urlOf(node, 'mqtt'), {
      protocolVersion: 5,
      username: 'anybody',
      password: secretOf('a'),
      reconnectPeriod: 0,
      autoAssignTopicAlias: true,
    })
    for (const n of [1, 2, 3]) {
      const properties = { contentType: 'application/json', userProperties: { site: 'north' } }
      await client.publishAsync('a/long/topic', `${n}`, { qos: 1, properties })
    }
    await client.endAsync()
    const frames = await node.node.frames(node.endpoint.id)
    expect(frames.map(({ topic }) => topic)).toEqual(['a/long/topic', 'a/long/topic', 'a/long/topic'])
    expect(frames[2]).toMatchObject({
      content_type: 'application/json',
      user_properties: { site: 'north' },
    })
  })

  test.each([
    [4, 4],
    [5, 0x86],
  ] as const)('version %i is told that its key is not valid', async (protocolVersion, code) => {
    await using node = await start('mqtt')
    const failure = await mqtt
      .connectAsync(urlOf(node, 'mqtt'), {
        protocolVersion,
        username: 'anybody',
        password: secretOf('x'),
        reconnectPeriod: 0,
      })
      .catch((error: { code: number }) => error)
    expect(failure).toMatchObject({ code })
  })

  test('never sends QoS 2 if CONNACK has the maximum, and is disconnected otherwise', async () => {
    await using node = await start('mqtt', { endpoint: mqttEndpoint({ mqtt_config: { ...mqttSettings, qos_max: 0 } }) })
    const client = await mqtt.connectAsync(urlOf(node, 'mqtt'), {
      protocolVersion: 4,
      username: 'anybody',
      password: secretOf('a'),
      reconnectPeriod: 0,
    })
    const closed = new Promise<void>((resolve) => client.once('close', () => resolve()))
    client.publish('t', 'no', { qos: 1 })
    await closed
    client.end(true)
    expect(await node.stored()).toEqual([])
  })
})

const hasMosquitto = spawnSync('mosquitto_pub', ['--version']).error === undefined
if (!hasMosquitto) process.stdout.write('mosquitto_pub is not installed (package mosquitto-clients): its tests are left out\n')

describe.skipIf(!hasMosquitto)('mosquitto_pub', () => {
  async function publish(node: MqttNode, scheme: 'mqtt' | 'mqtts', args: readonly string[], input = ''): Promise<number> {
    const to = ['-h', 'localhost', '-p', String(node.node.mqttPort), '-u', 'anybody', '-P', secretOf('a'), '-i', 'mosquitto']
    const tls = scheme === 'mqtts' ? ['--cafile', fixture('first.crt')] : []
    const child = spawn('mosquitto_pub', [...to, ...tls, ...args], { stdio: ['pipe', 'ignore', 'ignore'] })
    child.stdin.end(input)
    const [code] = await once(child, 'exit')
    return code
  }

  const cases = (['mqtt', 'mqtts'] as const).flatMap((scheme) => ['mqttv311', 'mqttv5'].map((version) => ({ scheme, version })))
  test.each(cases)('over $scheme, $version: a message, lines, a file with line breaks', async ({ scheme, version }) => {
    await using node = await start(scheme)
    expect(await publish(node, scheme, ['-V', version, '-q', '1', '-t', 'one', '-m', '{"a":1}'])).toBe(0)
    expect(await publish(node, scheme, ['-V', version, '-q', '1', '-t', 'lines', '-l'], '1\n2\n3\n')).toBe(0)
    expect(await publish(node, scheme, ['-V', version, '-q', '0', '-t', 'all', '-s', '-r'], '{\n"a":\n2}\n')).toBe(0)
    await until('the last', async () => {
      const metrics = await node.node.metric('inlet_mqtt_accepted_bytes_total')
      return metrics >= 20
    })
    expect(await node.stored()).toEqual(['one {"a":1}', 'lines 1', 'lines 2', 'lines 3', 'all {\n"a":\n2}\n'])
  })

  test('with user properties', async () => {
    await using node = await start('mqtt')
    const args = ['-V', 'mqttv5', '-q', '1', '-t', 't', '-m', 'x', '-D', 'publish', 'user-property', 'site', 'north']
    expect(await publish(node, 'mqtt', args)).toBe(0)
    const [frame] = await node.node.frames(node.endpoint.id)
    expect(frame?.user_properties).toEqual({ site: 'north' })
  })

  test('is refused with a key that is not valid', async () => {
    await using node = await start('mqtt')
    const wrong = ['-h', 'localhost', '-p', String(node.node.mqttPort), '-u', 'a', '-P', 'wrong', '-t', 't', '-m', 'x']
    const child = spawn('mosquitto_pub', wrong, { stdio: ['ignore', 'ignore', 'pipe'] })
    const [said] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect(said).toMatch(/bad user name or password|not authori[sz]ed/i)
    expect(child.exitCode).not.toBe(0)
  })
})
