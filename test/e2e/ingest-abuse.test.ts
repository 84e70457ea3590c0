/** The ingest process, from outside, under loads that would exhaust a server without bounds. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { aSnapshot, ControlStandIn, nodeToken, secretOf } from '../support/ingest-node.ts'
import { RawClient } from '../support/raw-http.ts'

const KiB = 1024
const MiB = 1024 * KiB

const headOf = (headers: string) =>
  `POST /v1/ingest HTTP/1.1\r\nHost: x\r\nX-API-Key: ${secretOf('a')}\r\nContent-Type: application/x-ndjson\r\n${headers}\r\n\r\n`
const small = `${headOf('Content-Length: 8')}{"a":1}\n`

class IngestProcess implements AsyncDisposable {
  readonly url: string
  readonly #child: ChildProcess
  readonly #release: () => Promise<void>

  private constructor(url: string, child: ChildProcess, release: () => Promise<void>) {
    this.url = url
    this.#child = child
    this.#release = release
  }

  static async start(): Promise<IngestProcess> {
    const control = await ControlStandIn.start()
    control.publish(aSnapshot())
    const directory = await mkdtemp(join(tmpdir(), 'inlet-abuse-'))
    const child = spawn(process.execPath, [resolve(import.meta.dirname, '../../src/main.ts'), 'ingest'], {
      env: {
        ...process.env,
        INLET_DATA_DIR: directory,
        INLET_NODE_TOKEN: nodeToken,
        INLET_CONTROL_URL: control.url,
        INLET_INGEST_LISTEN: '127.0.0.1:0',
        INLET_DISK_RESERVE_BYTES: '0B',
        INLET_REQUEST_TIMEOUT_SECONDS: '120',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const url = await new Promise<string>((found, failed) => {
      const log: string[] = []
      child.once('exit', () => failed(new Error(`ingest did not start:\n${log.join('\n')}`)))
      createInterface({ input: child.stderr }).on('line', (line) => {
        log.push(line)
        const entry = JSON.parse(line) as { readonly msg?: string; readonly url?: string }
        if (entry.msg === 'ingest listening' && entry.url !== undefined) found(entry.url)
      })
    })
    const server = new IngestProcess(url, child, async () => {
      await control[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    })
    while (!(await fetch(`${url}/readyz`)).ok);
    return server
  }

  async metric(name: string): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text()
    return Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name}{`))
        ?.split(' ')
        .at(-1),
    )
  }

  async until(name: string, isThere: (value: number) => boolean): Promise<void> {
    while (!isThere(await this.metric(name)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((done) => this.#child.once('exit', done))
    this.#child.kill('SIGTERM')
    await ended
    await this.#release()
  }
}

/** Open files that this process may have. */
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

test('10 000 idle connections cost little, and the next client is served', async (context) => {
  const count = 10_000
  const limit = await fileLimit()
  if (limit < count + 500) context.skip(`${count} connections need a limit of ${count + 500} open files, here it is ${limit}`)
  await using server = await IngestProcess.start()
  const clients = await openAll(server.url, 200)
  const exchange = async (client: RawClient) => {
    await client.send(small)
    expect(await client.answer()).toMatchObject({ status: 202 })
  }
  // What the first requests load and compile is no cost of a connection.
  for (let warm = 0; warm < 20; warm += 1) await Promise.all(clients.map(exchange))
  const before = await server.metric('process_resident_memory_bytes')
  clients.push(...(await openAll(server.url, count - clients.length)))
  for (let at = 0; at < count; at += 200) await Promise.all(clients.slice(at, at + 200).map(exchange))
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
  await server.until('inlet_ingest_connections', (connections) => connections < 10)
})

test('half-sent bodies hold no more memory than the bound, small requests still get in', async () => {
  await using server = await IngestProcess.start()
  const before = await server.metric('process_resident_memory_bytes')
  const clients = await openAll(server.url, 200)
  await Promise.all(clients.map((client) => client.send(headOf(`Content-Length: ${10 * MiB}`) + '1'.repeat(64 * KiB))))
  await server.until('inlet_ingest_requests_total', (refused) => refused === 200 - 12)
  expect(await server.metric('inlet_ingest_in_flight_bytes')).toBeLessThanOrEqual(128 * MiB)
  await using other = await RawClient.connect(server.url)
  await other.send(small)
  expect(await other.answer()).toMatchObject({ status: 202 })
  const after = await server.metric('process_resident_memory_bytes')
  console.log(`200 half-sent bodies of 10 MiB: ${((after - before) / MiB).toFixed(0)} MiB more resident memory`)
  expect(after - before).toBeLessThan(100 * MiB)
  await closeAll(clients)
  await server.until('inlet_ingest_in_flight_bytes', (bytes) => bytes === 0)
})

test('chunked bodies without an end are bounded as they arrive', async () => {
  await using server = await IngestProcess.start()
  const clients = await openAll(server.url, 100)
  const line = `${'1'.repeat(64 * KiB - 1)}\n`
  const chunk = `${line.length.toString(16)}\r\n${line}\r\n`
  let peak = 0
  const pour = async (client: RawClient) => {
    await client.send(headOf('Transfer-Encoding: chunked'))
    for (let sent = 0; sent < 64; sent += 1) {
      await client.send(chunk)
      if (sent % 16 === 0) peak = Math.max(peak, await server.metric('inlet_ingest_in_flight_bytes'))
    }
  }
  await Promise.all(clients.map(pour))
  await server.until('inlet_ingest_requests_total', (refused) => refused > 0)
  expect(peak).toBeLessThanOrEqual(128 * MiB)
  await closeAll(clients)
  await server.until('inlet_ingest_in_flight_bytes', (bytes) => bytes === 0)
})
