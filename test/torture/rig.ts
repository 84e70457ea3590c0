/**
 * A whole Inlet for one round: processes, destinations, views, endpoints, and the clients that send to them.
 *
 * Owns: creating and closing all of it, and what the faults act upon. Does not own: which faults come, nor the law.
 */
import { randomBytes } from 'node:crypto'
import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../tools/services/processes.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { until } from '../support/until.ts'
import { Ledger } from './ledger.ts'
import { HttpSender, type Sender } from './load/http-sender.ts'
import { MqttSender } from './load/mqtt-sender.ts'
import { Management } from './management.ts'
import { Processes, processNames } from './processes.ts'
import type { Random } from './random.ts'

export const buckets = ['torture-one', 'torture-two'] as const

const startMsMax = 60_000

const columns = [
  { name: 'q', type: 'INTEGER', path: '$.q', required: true },
  { name: 'n', type: 'INTEGER', path: '$.n', required: true },
  { name: 'v', type: 'DOUBLE', path: '$.v', cast_failures: 'dlq' },
]

export type RigEndpoint = { readonly id: string; isDeleted: boolean }

export class Rig implements AsyncDisposable {
  readonly directory: string
  readonly data: string
  readonly ingestUrl: string
  readonly apiKey: string
  readonly management: Management
  readonly processes: Processes
  /** Between the node and control. */
  readonly proxy: FaultProxy
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly ledger = new Ledger()
  readonly endpoints: RigEndpoint[] = []
  readonly destinationIds: string[] = []
  readonly viewIds: string[] = []
  readonly #random: Random
  readonly #senders = new Set<Sender>()
  /** Work that a fault left running, such as the removal of an endpoint. */
  readonly #background = new Set<Promise<void>>()

  private constructor(directory: string, random: Random, ports: readonly number[], proxy: FaultProxy) {
    this.directory = directory
    this.data = join(directory, 'data')
    this.#random = random
    this.proxy = proxy
    this.ingestUrl = `http://127.0.0.1:${ports[1]}`
    this.apiKey = `ing_live_${randomBytes(16).toString('hex')}`
    this.management = new Management({ apiUrl: `http://127.0.0.1:${ports[0]}`, ingestUrl: this.ingestUrl, apiKey: this.apiKey })
    this.environment = {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE:
        process.env['NODE_COMPILE_CACHE'] ?? join(import.meta.dirname, '../../node_modules/.cache/node-compile'),
      INLET_DATA_DIR: this.data,
      INLET_CONTROL_LISTEN: `127.0.0.1:${ports[0]}`,
      INLET_NODE_API_LISTEN: `127.0.0.1:${ports[2]}`,
      INLET_INGEST_LISTEN: `127.0.0.1:${ports[1]}`,
      INLET_CONTROL_URL: proxy.url,
      INLET_NODE_TOKEN: randomBytes(24).toString('hex'),
      INLET_BOOTSTRAP_API_KEY: this.apiKey,
      INLET_DISK_RESERVE_BYTES: '0B',
      INLET_API_REQUESTS_PER_MINUTE: '100000',
      INLET_ADDRESS_REQUESTS_PER_MINUTE: '100000',
      INLET_EXCHANGE_REQUESTS_PER_MINUTE: '100000',
    }
    this.processes = new Processes({ directory, environment: this.environment })
  }

  /** Starts everything healthy, with three endpoints. */
  static async start(directory: string, random: Random): Promise<Rig> {
    mkdirSync(join(directory, 'data'), { recursive: true })
    const ports = [await freePort(), await freePort(), await freePort()]
    const rig = new Rig(directory, random, ports, await FaultProxy.start(`http://127.0.0.1:${ports[2]}`))
    try {
      rig.processes.start(processNames)
      await until('the processes to be ready', () => rig.processes.isEverythingReady, startMsMax)
      for (const bucket of buckets) rig.destinationIds.push(await rig.#createDestination(bucket))
      for (const name of ['records', 'more']) rig.viewIds.push(await rig.#createView(name))
      for (const protocol of ['http', 'http', 'mqtt'] as const) rig.send(await rig.createEndpoint(), protocol)
      return rig
    } catch (error) {
      await rig[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Writes down what happened, for whoever reads the directory later. */
  note(text: string): void {
    appendFileSync(join(this.directory, 'events.log'), `${new Date().toISOString()} ${text}\n`)
  }

  get buckets(): string {
    return join(this.data, 'buckets')
  }

  get wal(): string {
    return join(this.data, 'node/wal')
  }

  /** Returns the endpoints that are not being deleted. */
  get living(): readonly RigEndpoint[] {
    return this.endpoints.filter(({ isDeleted }) => !isDeleted)
  }

  /** Creates an endpoint with a view and waits until it accepts data. */
  async createEndpoint(settings: object = {}): Promise<RigEndpoint> {
    const endpoint = await this.management.ok('POST', '/v1/endpoints', {
      region: 'loc',
      destination_id: this.destinationIds[0],
      segment_max_age_seconds: 1,
      mqtt_config: { enabled: true },
      ...settings,
    })
    await this.management.call('POST', `/v1/endpoints/${endpoint.id}/views`, { view_id: this.viewIds[0] })
    const made = { id: endpoint.id as string, isDeleted: false }
    this.endpoints.push(made)
    await until(
      'the endpoint to be deployed',
      async () => (await this.management.ok('GET', `/v1/endpoints/${made.id}`)).status !== 'deploying',
      startMsMax,
    )
    return made
  }

  /** Begins to send to the endpoint. */
  send({ id: endpointId }: RigEndpoint, protocol: 'http' | 'mqtt'): Sender {
    const { ledger, ingestUrl, apiKey } = this
    const Kind = protocol === 'http' ? HttpSender : MqttSender
    const sender = new Kind({ ledger, ingestUrl, apiKey, endpointId, random: this.#random })
    this.#senders.add(sender)
    return sender
  }

  async stopSending(): Promise<void> {
    await Promise.all([...this.#senders].map((sender) => sender.stop()))
    this.#senders.clear()
  }

  /** Lets work go on while other faults come. A failure of it is a trouble of the round. */
  inBackground(what: string, work: () => Promise<void>): void {
    const done = work()
      .catch((error: unknown) => void this.processes.troubles.push(`${what}: ${String(error)}`))
      .finally(() => this.#background.delete(done))
    this.#background.add(done)
  }

  async backgroundWork(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.processes.close()
    await this.stopSending()
    await this.proxy[Symbol.asyncDispose]()
  }

  async #createDestination(bucket: string): Promise<string> {
    const { id } = await this.management.ok('POST', '/v1/destinations', {
      ...{ name: bucket, bucket, prefix: 'in/let', region: 'local' },
      role_arn: 'arn:aws:iam::000000000000:role/inlet-test',
    })
    await this.management.ok('POST', `/v1/destinations/${id}/validate`)
    return id
  }

  async #createView(name: string): Promise<string> {
    const { id } = await this.management.ok('POST', '/v1/views', { name, definition: { columns } })
    await this.management.ok('POST', `/v1/views/${id}/publish`)
    return id
  }
}
