/**
 * A reader that reads only what markers list, while deliveries are killed and S3 fails at random. `INLET_TEST_SEED` repeats a run.
 * Law: every file that a marker lists exists and matches the marker. No segment and no record is seen twice. In the end the reader has seen
 * every acknowledged record.
 */

import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { expectExactlyOnce, numbersIn, Sender } from '../support/acknowledged.ts'
import { type Fault, FaultProxy } from '../support/fault-proxy.ts'
import { Installation } from '../support/installation.ts'
import type { Marker } from '../support/markers.ts'
import { Customer, type CustomerDestination, describeGateway, gatewayEnvironment } from '../support/object-gateway.ts'
import { until } from '../support/until.ts'

const seed = Number(process.env['INLET_TEST_SEED'] ?? randomInt(2 ** 31))
const kills = 6

const faults: readonly Fault[] = [
  { kind: 'answer', status: 500, code: 'InternalError' },
  { kind: 'answer', status: 503, code: 'SlowDown' },
  { kind: 'reset', afterBytes: 300 },
  { kind: 'lost-answer' },
  { kind: 'crawl', bytesPerSecond: 20_000 },
]

describeGateway('a reader of markers', (gateway) => {
  test(`never sees part of a segment or a record twice (INLET_TEST_SEED=${seed})`, { timeout: 600_000 }, async () => {
    const random = seededRandom(seed).fraction
    const customer = new Customer(gateway)
    await using proxy = await FaultProxy.start(gateway.url, { random })
    const environment = { ...gatewayEnvironment(gateway, { s3Url: proxy.url }), INLET_LOG_LEVEL: 'error' }
    await using installation = await Installation.create({ environment })
    await installation.start('control', 'ingest', 'delivery')
    const destination = await customer.destination(installation)
    const view = { name: 'numbers', definition: { columns: [{ name: 'number', type: 'INTEGER', path: '$.number' }] } }
    const { id: endpointId } = await installation.endpoint({
      ...{ bucket: destination.bucket, destination_id: destination.id, view },
    })
    const sender = new Sender(installation, endpointId)
    sender.start()
    const reader = new Reader(customer, destination, endpointId)
    reader.start()
    for (let kill = 0; kill < kills; kill += 1) {
      const fault = faults[Math.floor(random() * faults.length)]
      if (fault !== undefined) proxy.break(`/${destination.bucket}/`, fault, { share: 0.4, methods: ['PUT', 'POST', 'GET'] })
      const seen = reader.markers.length
      await until('two more markers', () => reader.markers.length > seen + 1 || reader.failure !== undefined, 120_000)
      const held = proxy.hits(`/${destination.bucket}/`)
      // At an arbitrary moment of a delivery.
      await until('a request that fails', () => proxy.hits(`/${destination.bucket}/`) > held, 30_000)
      await installation.kill('delivery')
      await installation.start('delivery')
    }
    await sender.stop()
    proxy.heal(`/${destination.bucket}/`)
    await installation.committed(endpointId, sender.seqs, 90_000)
    await reader.stop()
    expect(reader.failure).toBeUndefined()
    expect(reader.markers.length).toBeGreaterThan(kills)
    expect(sender.acknowledged.filter(({ number }) => !reader.numbers.has(number))).toEqual([])
    await expectExactlyOnce({ installation, customer, destination, endpointId, sender })
  })
})

class Reader {
  readonly #customer: Customer
  readonly #destination: CustomerDestination
  readonly #endpointId: string
  readonly #segments = new Set<string>()
  #reading = false
  #running: Promise<void> = Promise.resolve()
  readonly markers: Marker[] = []
  readonly numbers = new Set<number>()
  failure: unknown

  constructor(customer: Customer, destination: CustomerDestination, endpointId: string) {
    this.#customer = customer
    this.#destination = destination
    this.#endpointId = endpointId
  }

  start(): void {
    this.#reading = true
    this.#running = this.#run().catch((error) => {
      this.failure = error
    })
  }

  /** Reads the remaining markers. */
  async stop(): Promise<void> {
    this.#reading = false
    await this.#running
    if (this.failure === undefined) await this.#readNew().catch((error) => (this.failure = error))
  }

  async #run(): Promise<void> {
    while (this.#reading) await this.#readNew()
  }

  async #readNew(): Promise<void> {
    const all = await this.#customer.markers(this.#destination, this.#endpointId)
    const known = new Set(this.markers.map(({ id }) => id))
    for (const marker of all.filter(({ id }) => !known.has(id))) {
      const segment = `${marker.log} ${marker.seq}`
      if (this.#segments.has(segment)) throw new Error(`segment ${segment} was seen twice`)
      this.#segments.add(segment)
      for (const kind of Object.keys(marker.artifacts)) {
        await using _files = await this.#customer.download(this.#destination.bucket, [marker], kind)
      }
      for (const number of await numbersIn(this.#customer, this.#destination.bucket, [marker])) {
        if (this.numbers.has(number)) throw new Error(`record ${number} was seen twice, again in ${marker.id}`)
        this.numbers.add(number)
      }
      this.markers.push(marker)
    }
  }
}
