/** MQTT from outside: every acknowledged message is in the Parquet files, whichever process is killed. */
import mqtt, { type MqttClient } from 'mqtt'
import { expect, test } from 'vitest'
import { freePort } from '../../tools/services/processes.ts'
import { describeWith, useDeployment } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const bucket = 'bucket'
const inFlightMax = 200

/** Publishes consecutive numbers with QoS 1. The MQTT client reconnects and resends by itself. */
class Publisher {
  readonly name: string
  readonly acknowledged = new Set<number>()
  /** Messages in flight when a connection ended: only these may be stored twice. */
  readonly sentAgain = new Set<number>()
  readonly #client: MqttClient
  readonly #unacknowledged = new Set<number>()
  readonly failures: string[] = []
  reconnects = 0
  #next = 0
  #isStopping = false
  readonly #done: Promise<void>

  constructor(name: string, url: string, password: string, protocolVersion: 4 | 5) {
    this.name = name
    this.#client = mqtt.connect(url, {
      protocolVersion,
      clientId: name,
      username: 'somebody',
      password,
      reconnectPeriod: 50,
      connectTimeout: 2_000,
    })
    this.#client.on('error', () => undefined)
    this.#client.on('reconnect', () => {
      this.reconnects += 1
    })
    this.#client.on('close', () => {
      for (const number of this.#unacknowledged) this.sentAgain.add(number)
    })
    this.#done = this.#publish()
  }

  /** Stops publishing and waits until every message is acknowledged. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#done
    await until(`the last acknowledgements of ${this.name}`, () => this.#unacknowledged.size === 0, 30_000)
    await this.#client.endAsync()
  }

  async #publish(): Promise<void> {
    while (!this.#isStopping) {
      if (this.#unacknowledged.size >= inFlightMax || !this.#client.connected) {
        await new Promise((resolve) => setTimeout(resolve, 2))
        continue
      }
      const number = this.#next++
      this.#unacknowledged.add(number)
      this.#client.publish(`fleet/${this.name}`, `{"n":${number},\n"from":"${this.name}"}`, { qos: 1 }, (error) => {
        this.#unacknowledged.delete(number)
        if (error) this.failures.push(error.message)
        else this.acknowledged.add(number)
      })
      // A steady load: at full speed it would take the processors from the processes that restart.
      if (number % 4 === 0) await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
}

/** Counts each message of each client in the bucket. */
async function delivered(installation: Installation, endpointId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await readWithDuckDb(installation.artifacts(bucket, endpointId, 'parquet'), 'payload, topic, client_id, protocol')
  const counts = new Map<string, number>()
  for (const { payload, topic, client_id, protocol } of rows) {
    const { n, from } = JSON.parse(String(payload))
    if (from !== undefined)
      expect({ topic, client_id, protocol }).toEqual({ topic: `fleet/${from}`, client_id: from, protocol: 'mqtt' })
    const key = `${from} ${n}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

/** Waits until the log is empty: everything has reached the bucket. */
async function allDelivered(installation: Installation, endpointId: string): Promise<void> {
  await until('everything to be delivered', () => installation.walFiles(endpointId).length === 0, 60_000)
}

const ends = [
  { signal: 'SIGKILL', times: runs(1, 4) },
  { signal: 'SIGTERM', times: runs(1, 2) },
] as const

describeWith('processes', 'clients that reconnect', () => {
  test.each(ends.slice(0, runs(1, 2)))(
    'lose no acknowledged message through $signal of ingest, and send only unacknowledged ones twice',
    async ({ signal, times }) => {
      const port = await freePort()
      await using installation = await Installation.create({ environment: { INLET_MQTT_LISTEN: `127.0.0.1:${port}` } })
      await installation.start('control', 'ingest', 'delivery')
      // MQTT 3.1.1 over TCP cannot name an endpoint, so there must be only one.
      const [first] = (await installation.ok('GET', '/v1/endpoints')).items
      await installation.ok('DELETE', `/v1/endpoints/${first.id}`)
      const { id } = await installation.endpoint({ bucket, mqtt_config: {} })
      const tcp = `mqtt://127.0.0.1:${port}`
      const ws = `${installation.ingestUrl.replace('http', 'ws')}/mqtt`
      const publishers = [
        new Publisher('tcp-4', tcp, installation.apiKey, 4),
        new Publisher('tcp-5', tcp, installation.apiKey, 5),
        new Publisher('ws-4', `${ws}?endpoint=${id}`, installation.apiKey, 4),
        new Publisher('ws-5', `${ws}?endpoint=${id}`, installation.apiKey, 5),
      ]
      for (let kills = 0; kills < times; kills += 1) {
        const before = publishers.map(({ acknowledged }) => acknowledged.size)
        await until(
          'each of them to be acknowledged more',
          () => publishers.every(({ acknowledged }, index) => acknowledged.size > (before[index] ?? 0) + 300),
          30_000,
        )
        await installation.end('ingest', signal)
        await installation.start('ingest')
      }
      await Promise.all(publishers.map((publisher) => publisher.stop()))
      await allDelivered(installation, id)
      const counts = await delivered(installation, id)
      let twice = 0
      for (const { name, acknowledged, sentAgain, failures, reconnects } of publishers) {
        expect(failures).toEqual([])
        expect(reconnects).toBeGreaterThanOrEqual(times)
        const missing = [...acknowledged].filter((number) => !counts.has(`${name} ${number}`))
        expect(missing).toEqual([])
        for (const [key, count] of counts) {
          if (!key.startsWith(`${name} `) || count === 1) continue
          twice += 1
          expect(sentAgain.has(Number(key.slice(name.length + 1))), `${key} is there ${count} times`).toBe(true)
        }
      }
      process.stdout.write(`${counts.size} messages, ${twice} of them more than once\n`)
    },
  )
})

describeWith('objects', 'both protocols', () => {
  const deployment = useDeployment()

  test('an endpoint takes HTTP and MQTT at once, and its view tells them apart', async () => {
    const columns = [
      { name: 'n', type: 'INTEGER', path: '$.n', required: true },
      { name: 'protocol', type: 'VARCHAR', path: '$$.protocol' },
      { name: 'topic', type: 'VARCHAR', path: '$$.topic' },
      { name: 'client', type: 'VARCHAR', path: '$$.client_id' },
      { name: 'site', type: 'VARCHAR', path: '$$.user_properties.site' },
      { name: 'address', type: 'VARCHAR', path: '$$.address' },
      { name: 'key_name', type: 'VARCHAR', path: '$$.key_name' },
      { name: 'at', type: 'TIMESTAMP', path: '$$.received_at', required: true },
    ]
    const view = { name: 'both', definition: { columns } }
    const { id, viewName } = await deployment().endpoint({
      ...{ bucket, view, mqtt_config: {}, kept_fields: ['address_masked', 'key_name'] },
    })
    const client = await mqtt.connectAsync(deployment().mqttUrl(id), {
      protocolVersion: 5,
      clientId: 'device',
      username: 'somebody',
      password: deployment().apiKey,
    })
    const properties = { userProperties: { site: 'north' } }
    await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        if (n % 2 === 0) await client.publishAsync('t/1', `{"n":${n}}`, { qos: 1, properties })
        else expect((await deployment().ingest(id, `{"n":${n}}`)).status).toBe(202)
      }),
    )
    await client.endAsync()
    const delivered = async () => (await deployment().markers(id)).reduce((sum, { records }) => sum + records, 0)
    await until('everything to be delivered', async () => (await delivered()) >= 200, 60_000)
    const rows = await readWithDuckDb(await deployment().artifacts(id, `views/${viewName}/v1`))
    expect(rows).toHaveLength(200)
    for (const { n, at: _, ...envelope } of rows) {
      const isMqtt = Number(n) % 2 === 0
      expect(envelope).toEqual({
        protocol: isMqtt ? 'mqtt' : 'http',
        topic: isMqtt ? 't/1' : null,
        client: isMqtt ? 'device' : null,
        site: isMqtt ? 'north' : null,
        address: '127.0.0.0',
        key_name: expect.stringMatching(/./),
      })
    }
  })
})
