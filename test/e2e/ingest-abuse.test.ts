/** The ingest process, from outside, under loads that would exhaust a server without limits. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { RawClient } from '../support/raw-http.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/use-one.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** Control and ingest with an endpoint. */
class Ingest implements AsyncDisposable {
  readonly installation: Installation
  readonly endpointId: string

  private constructor(installation: Installation, endpointId: string) {
    this.installation = installation
    this.endpointId = endpointId
  }

  static async start(): Promise<Ingest> {
    const installation = await Installation.create({ environment: { INLET_REQUEST_TIMEOUT_SECONDS: '120' } })
    await installation.start('control', 'ingest')
    const { id } = await installation.endpoint({ bucket: 'abuse' })
    return new Ingest(installation, id)
  }

  get url(): string {
    return this.installation.ingestUrl
  }

  head(headers: string): string {
    const target = `/v1/ingest?endpoint=${this.endpointId}`
    const common = `Host: x\r\nX-API-Key: ${this.installation.apiKey}\r\nContent-Type: application/x-ndjson`
    return `POST ${target} HTTP/1.1\r\n${common}\r\n${headers}\r\n\r\n`
  }

  smallRequest(): string {
    return `${this.head('Content-Length: 8')}{"a":1}\n`
  }

  /** Sends a small request on a connection of its own, and returns the status of the response. */
  async smallStatus(): Promise<number> {
    await using client = await RawClient.connect(this.url)
    await client.send(this.smallRequest())
    return (await client.answer()).status
  }

  async metric(name: string): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text()
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${name}{`))
    return Number(line?.split(' ').at(-1))
  }

  /** Number of rejected requests. */
  async rejections(): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text()
    const lines = text.split('\n').filter((line) => /^inlet_ingest_requests_total\{.*status="(4|5)\d\d"/.test(line))
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }

  untilMetric(name: string, isReached: (value: number) => boolean): Promise<void> {
    return until(`${name} to be reached`, async () => isReached(await this.metric(name)), 60_000)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.installation[Symbol.asyncDispose]()
  }
}

/** Returns the number of files that this process may open. */
async function fileLimit(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  return Number(/Max open files\s+(\d+)/.exec(limits)?.[1] ?? 1024)
}

async function openAll(url: string, count: number): Promise<RawClient[]> {
  const clients: RawClient[] = []
  while (clients.length < count) {
    const batch = Math.min(200, count - clients.length)
    clients.push(...(await Promise.all(Array.from({ length: batch }, () => RawClient.connect(url)))))
  }
  return clients
}

const closeAll = (clients: readonly RawClient[]) => Promise.all(clients.map((client) => client[Symbol.asyncDispose]()))

describeWith('processes', 'the ingest process', () => {
  const ingest = useOne(() => Ingest.start(), 60_000)

  test('thousands of idle connections cost little, and the next client is served', async (context) => {
    const count = runs(2_000, 10_000)
    const limit = await fileLimit()
    if (limit < count + 500) context.skip(`${count} connections need a limit of ${count + 500} open files, here it is ${limit}`)
    const server = ingest()
    const clients = await openAll(server.url, 200)
    const exchange = async (client: RawClient) => {
      await client.send(server.smallRequest())
      expect(await client.answer()).toMatchObject({ status: 202 })
    }
    // The first requests load and compile code: that is not a cost of connections.
    for (let warm = 0; warm < 20; warm += 1) await Promise.all(clients.map(exchange))
    const before = await server.metric('process_resident_memory_bytes')
    // A connection that does not authenticate at once is closed.
    while (clients.length < count) {
      const more = await openAll(server.url, Math.min(200, count - clients.length))
      await Promise.all(more.map(exchange))
      clients.push(...more)
    }
    const after = await server.metric('process_resident_memory_bytes')
    expect(await server.metric('inlet_ingest_connections')).toBeGreaterThanOrEqual(count)
    const perConnection = Math.round((after - before) / (count - 200))
    console.log(`an idle connection costs ${perConnection} bytes of resident memory`)
    expect(perConnection).toBeLessThan(32 * KiB)

    await using late = await RawClient.connect(server.url)
    const start = performance.now()
    await exchange(late)
    console.log(`the next client is answered in ${(performance.now() - start).toFixed(1)} ms`)
    await closeAll(clients)
    await server.untilMetric('inlet_ingest_connections', (connections) => connections < 10)
  })

  test('half-sent bodies hold what has arrived and no more than the bound; small requests still get in', async () => {
    const server = ingest()
    const before = await server.metric('process_resident_memory_bytes')
    const received = await server.metric('inlet_ingest_received_bytes_total')
    const rejections = await server.rejections()
    const clients = await openAll(server.url, 200)
    const part = 64 * KiB
    await Promise.all(clients.map((client) => client.send(server.head(`Content-Length: ${10 * MiB}`) + '1'.repeat(part))))
    await server.untilMetric('inlet_ingest_received_bytes_total', (bytes) => bytes === received + clients.length * part)
    expect([await server.rejections(), await server.smallStatus()]).toEqual([rejections, 202])
    const after = await server.metric('process_resident_memory_bytes')
    console.log(`200 half-sent bodies of 10 MiB: ${((after - before) / MiB).toFixed(0)} MiB more resident memory`)
    expect(after - before).toBeLessThan(100 * MiB)
    await Promise.all(clients.map((client) => client.send('1'.repeat(MiB - part))))
    await until('a rejection', async () => (await server.rejections()) > rejections, 60_000)
    expect(await server.metric('inlet_ingest_in_flight_bytes')).toBeLessThanOrEqual(128 * MiB)
    await until('room for a small request', async () => (await server.smallStatus()) === 202)
    await closeAll(clients)
    await server.untilMetric('inlet_ingest_in_flight_bytes', (bytes) => bytes === 0)
  })
})
