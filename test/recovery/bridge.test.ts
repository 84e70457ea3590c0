/** A real mosquitto forwards its messages as docs/senders.md says. Both sides are killed and restarted: nothing is lost. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import mqtt from 'mqtt'
import { expect, test } from 'vitest'
import { freePort } from '../../tools/services/processes.ts'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const broker = '/usr/sbin/mosquitto'
const name = existsSync(broker) ? 'mosquitto as a bridge' : `mosquitto as a bridge (skipped: ${broker} is not installed)`

/** The configuration of the manual, with other places, and without TLS. */
function configuration({ port, mqttPort, key, store }: Record<'port' | 'mqttPort' | 'key' | 'store', string | number>): string {
  const manual = readFileSync(resolve(import.meta.dirname, '../../docs/senders.md'), 'utf8')
  const block = /```\n(persistence true\n[\s\S]*?)```/.exec(manual)?.[1] ?? ''
  const changes: readonly (readonly [RegExp, string])[] = [
    [/^persistence_location .*$/m, `persistence_location ${store}/`],
    [/^listener .*$/m, `listener ${port} 127.0.0.1`],
    [/^address .*$/m, `address 127.0.0.1:${mqttPort}`],
    [/^bridge_cafile .*$/m, ''],
    [/^remote_password .*$/m, `remote_password ${key}`],
    [/^restart_timeout .*$/m, 'restart_timeout 1 1'],
  ]
  return changes.reduce(
    (text, [line, instead]) => {
      expect(text).toMatch(line)
      return text.replace(line, instead)
    },
    `allow_anonymous true\n${process.getuid?.() === 0 ? 'user root\n' : ''}${block}`,
  )
}

describeWith('processes', name, () => {
  test.skipIf(!existsSync(broker)).each(['mqttv311', 'mqttv50'])(
    'every message that mosquitto took is in Parquet, %s',
    async (version) => {
      const [mqttPort, port] = [await freePort(), await freePort()]
      const directory = await mkdtemp(join(tmpdir(), 'inlet-bridge-'))
      await using installation = await Installation.create({ environment: { INLET_MQTT_LISTEN: `127.0.0.1:${mqttPort}` } })
      let mosquitto: ChildProcess | undefined
      const startMosquitto = () => {
        mosquitto = spawn(broker, ['-c', join(directory, 'bridge.conf')], { stdio: 'ignore' })
      }
      const stopMosquitto = async () => {
        if (mosquitto === undefined || mosquitto.exitCode !== null) return
        const exited = once(mosquitto, 'exit')
        mosquitto.kill('SIGTERM')
        await exited
      }
      let sent = 0
      /** Returns once mosquitto has all of them. */
      const publish = async (count: number) => {
        await until('mosquitto to listen', () => isListening(port))
        const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0 })
        const numbers = Array.from({ length: count }, (_, index) => sent + index)
        await Promise.all(numbers.map((n) => client.publishAsync(`plant/${n % 7}`, `{"n":${n}}`, { qos: 1 })))
        sent += count
        await client.endAsync()
      }
      try {
        await installation.start('control', 'ingest', 'delivery')
        const endpoint = await installation.endpoint({ bucket: 'plant', mqtt_config: {} })
        const { api_key: key } = await installation.ok('POST', '/v1/keys', {
          ...{ name: 'plant north', scopes: ['ingest'], endpoint_ids: [endpoint.id] },
        })
        await mkdir(join(directory, 'store'))
        const settings = configuration({ port, mqttPort, key, store: join(directory, 'store') })
        await writeFile(join(directory, 'bridge.conf'), `${settings}bridge_protocol_version ${version}\n`)
        const stored = async () => {
          const rows = await readWithDuckDb(installation.artifacts('plant', endpoint.id, 'parquet'))
          return rows.map(({ payload, topic }) => ({ n: JSON.parse(String(payload)).n as number, topic }))
        }
        const atLeast = (count: number) =>
          until(`${count} messages`, async () => new Set((await stored()).map(({ n }) => n)).size >= count, 60_000)

        startMosquitto()
        await publish(300)
        await atLeast(100)
        // More than mosquitto queues unless it is told to.
        await installation.kill('ingest')
        await publish(2_500)
        await stopMosquitto()
        startMosquitto()
        await publish(200)
        await installation.start('ingest')
        await atLeast(400)
        await installation.kill('ingest')
        await installation.start('ingest')
        await publish(100)
        await atLeast(sent)
        const rows = await stored()
        expect(new Set(rows.map(({ n }) => n))).toEqual(new Set(Array.from({ length: sent }, (_, n) => n)))
        expect(rows.every(({ n, topic }) => topic === `plant/${n % 7}`)).toBe(true)
        // Messages in flight when a side ended may have been stored before, too. With MQTT 5 that is the whole queue.
        expect(rows.length - sent).toBeLessThan(version === 'mqttv311' ? 200 : sent)
      } finally {
        await stopMosquitto()
        await rm(directory, { recursive: true })
      }
    },
    240_000,
  )
})

function isListening(port: number): Promise<boolean> {
  return mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0 }).then(
    (client) => client.endAsync().then(() => true),
    () => false,
  )
}
