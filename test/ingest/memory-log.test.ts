/**
 * Ingest composed from ports: its log and its files are in memory, so nothing of it knows that a log can be files. Only the sockets are real.
 */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { httpUrl } from '#config/addresses.ts'
import { readConfig } from '#config/config.ts'
import { composeIngest, type IngestPlane } from '#ingest/plane.ts'
import { systemClock } from '#lib/clock.ts'
import { createMetrics } from '#lib/metrics.ts'
import { seededRandom } from '#lib/random.ts'
import { startAll, stopAll } from '#lib/service.ts'
import { createLogger } from '#lib/telemetry.ts'
import { MemoryLogWriter } from '#log/memory/log-writer.ts'
import { MemorySegmentSource } from '#log/memory/segment-source.ts'
import { MemoryStorage } from '#log/memory/storage.ts'
import { newId } from '#model/id.ts'
import type { Snapshot } from '#model/snapshot.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { NodeFence } from '#node/node-fence.ts'
import { Registration } from '#node/registration.ts'
import { FaultyDisk } from '../support/faulty-files.ts'
import { anEndpoint, aSnapshot, ControlStandIn, nodeToken, secretOf } from '../support/ingest-node.ts'
import { until } from '../support/until.ts'

const endpoint = anEndpoint()
const snapshot = aSnapshot({ endpoints: [endpoint] })
const nodeId = newId()
const random = seededRandom(7)
const logger = createLogger('ingest', 'silent')
let epoch = snapshot.epoch
const never = new AbortController().signal
let control: ControlStandIn
let storage: MemoryStorage
let disk: FaultyDisk
let plane: IngestPlane

beforeEach(async () => {
  control = await ControlStandIn.start()
  control.publish(snapshot)
  storage = new MemoryStorage()
  disk = new FaultyDisk(random)
  disk.capacityBytes = 1e12
  await start()
})

afterEach(async () => {
  await stopAll(plane.services, never)
  await control[Symbol.asyncDispose]()
})

test('a receipt has the seq that the log gave, and the source reads what was sent', async () => {
  const body = { accepted_records: 2, accepted_bytes: 15, segment_seq: 0 }
  expect(await post('{"n":1}\n{"n":2}')).toMatchObject({ status: 202, body })
  expect(await post('{"n":3}')).toMatchObject({ status: 202, body: { accepted_records: 1, segment_seq: 0 } })
  await restart('stop')
  expect(await post('{"n":4}')).toMatchObject({ status: 202, body: { segment_seq: 1 } })
  await restart('stop')
  expect(await stored()).toEqual(['0 {"n":1}\n{"n":2}', '0 {"n":3}', '1 {"n":4}'])
})

test.each(['stop', 'crash'] as const)('after a %s, a request with its key is not stored again', async (end) => {
  const first = await post('once', { 'idempotency-key': 'k' })
  expect(first).toMatchObject({ status: 202, body: { segment_seq: 0 } })
  expect(await post('once', { 'idempotency-key': 'k' })).toEqual(first)
  await restart(end)
  expect(await post('once', { 'idempotency-key': 'k' })).toEqual(first)
  expect(await post('other', { 'idempotency-key': 'k' })).toMatchObject({ status: 422 })
  await restart('stop')
  expect(await stored()).toEqual(['0 once'])
})

test('what is not admitted is not stored, and a log that ended takes nothing until its endpoint is back', async () => {
  expect(await post('stranger', { authorization: `Bearer ${secretOf('z')}` })).toMatchObject({ status: 401 })
  expect(await post('kept')).toMatchObject({ status: 202 })
  for (const desired_state of ['paused', 'draining'] as const) {
    await publish({ ...snapshot, endpoints: [{ ...endpoint, desired_state }] })
    expect((await post(desired_state)).status).toBeGreaterThanOrEqual(400)
  }
  await publish({ ...snapshot, endpoints: [] })
  expect(await post('deleted')).toMatchObject({ status: 404 })
  await publish(snapshot)
  expect(await post('back')).toMatchObject({ status: 202 })
  await restart('stop')
  expect(await stored()).toEqual(['0 kept', '1 back'])
})

test('without room in the log clients get 503, and 202 once there is room', async () => {
  storage.capacityBytes = 10
  expect(await post('too much')).toMatchObject({ status: 503 })
  storage.capacityBytes = Number.POSITIVE_INFINITY
  await until('room', async () => (await post('fits')).status === 202)
  await restart('stop')
  expect(await stored()).toEqual(['0 fits'])
})

async function start(): Promise<void> {
  const files = disk.mount()
  const config = readConfig({
    INLET_DATA_DIR: '/data',
    INLET_NODE_TOKEN: nodeToken,
    INLET_CONTROL_URL: control.url,
    INLET_INGEST_LISTEN: '127.0.0.1:0',
    INLET_DISK_RESERVE_BYTES: '0B',
  })
  const clock = new CheckedClock({ machine: systemClock, logger })
  const credential = await NodeCredential.open(nodeId, config.paths.nodeCredential, { files, random })
  const client = new ControlClient({ url: control.url, credential, clock })
  const node = { region: 'loc', ipv4: [], ipv6: [], ingest_address: '127.0.0.1:8081' }
  const registration = new Registration({ client, credential, joinSecret: null, node, logger })
  const fence = await NodeFence.open({ path: config.paths.nodeFence, files, logger })
  plane = composeIngest(config, {
    ...{ nodeId, control: client, registration, fence, files, clock, machine: systemClock, random, logger },
    addresses: { http: config.ingestListen, mqtt: null },
    openCopies: undefined,
    openLog: (hooks) => new MemoryLogWriter({ storage, clock, random, ...hooks }),
    startThread: () => {
      throw new Error('no export request is sent')
    },
    ...{ certificate: undefined, handed: undefined, supervisorPid: undefined, tracer: undefined, traces: undefined },
    ownBaseUrl: 'http://127.0.0.1',
    registry: createMetrics('ingest', '0', clock),
  })
  await startAll(plane.services)
  await until('the configuration', async () => (await fetch(`${url()}/readyz`)).status === 200)
}

async function restart(end: 'stop' | 'crash'): Promise<void> {
  if (end === 'crash') {
    storage.crash()
    disk.crash()
  }
  await stopAll(plane.services, never)
  await start()
}

function url(): string {
  return httpUrl(plane.http.address, 'http')
}

async function post(body: string, headers: Record<string, string> = {}): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url()}/v1/ingest?endpoint=${endpoint.id}`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/x-ndjson', authorization: `Bearer ${secretOf('a')}`, ...headers },
  })
  return { status: response.status, body: await response.json() }
}

/** Publishes a snapshot, and waits until it is applied. */
async function publish(next: Snapshot): Promise<void> {
  epoch += 1
  control.publish({ ...next, epoch })
  await until('the snapshot', async () =>
    (await (await fetch(`${url()}/metrics`)).text()).includes(`applied_epoch{process="ingest"} ${epoch}\n`),
  )
}

/** Returns the payload of each frame, after the seq of its segment. */
async function stored(): Promise<readonly string[]> {
  const source = new MemorySegmentSource(storage, systemClock)
  const found: string[] = []
  for (const segment of (await source.readLog(endpoint.id)).segments) {
    const { frames } = await source.open(segment)
    for await (const group of frames(1_024))
      for (const { payload } of group) found.push(`${segment.seq} ${Buffer.from(payload).toString().trimEnd()}`)
  }
  return found
}
