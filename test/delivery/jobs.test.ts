import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { compressTo, describeFile } from '#delivery/convert/build/built-file.ts'
import { conversionBounds, createConversionPool } from '#delivery/convert/conversion-pool.ts'
import { ConversionRunner } from '#delivery/convert/conversion-runner.ts'
import { WorkerAccess } from '#delivery/convert/worker-access.ts'
import { JobWorker } from '#delivery/jobs/job-worker.ts'
import { jobWorkerLimits } from '#delivery/jobs/limits.ts'
import { runUnit } from '#delivery/jobs/unit-run.ts'
import type { UnitEnd } from '#delivery/jobs/unit-scratch.ts'
import { conditionalPutsByDestination } from '#delivery/publish/conditional-puts.ts'
import { must } from '#lib/assert.ts'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { FairSlots } from '#lib/fair-slots.ts'
import { Sandbox } from '#lib/sandbox.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { newId } from '#model/id.ts'
import type { LeaseRequest, Leases, Unit, UnitReport } from '#model/job-protocol.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import { leaseLimits } from '#store/limits.ts'
import { damagingConversions } from '../support/damaging-conversions.ts'
import { aDestination, conversionPool } from '../support/delivery-node.ts'
import { FaultyConversions } from '../support/faulty-conversions.ts'
import { FaultyStores } from '../support/faulty-stores.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const logger = createLogger('delivery', 'silent')
const never = new AbortController().signal
const sandbox = await Sandbox.probe()
const canChangeUser = process.getuid?.() === 0 && sandbox.missing.length === 0
let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-jobs-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const view = { id: newId(), name: 'numbers', version: 2, definition: { columns: [{ name: 'n', type: 'INTEGER', path: '$.n' }] } }

function aUnit(change: Partial<Unit> = {}): Unit {
  const [endpoint_id, node_id, log] = [newId(), newId(), 'abcdefghij']
  return {
    lease_id: newId(),
    lease_ms: leaseLimits.leaseMs,
    job_id: newId(),
    account_id: newId(),
    commit: { id: `${node_id}-${log}-000000000000`, endpoint_id, node_id, log, seq: 0, sealed_at: '2026-11-20T08:00:00.000Z' },
    view,
    source: { kind: 'segment', artifact: { key: 'p/segment', bytes: 0, rows: 0, sha256: '' }, from_version: null },
    target: { ...aDestination(), prefix: 'p' },
    ...change,
  }
}

type Options = Parameters<typeof runUnit>[1]

/** A unit whose segment is in the bucket with the given number of records. */
async function furnished(records: number): Promise<{ unit: Unit; stores: FaultyStores; options: Options }> {
  const unit = aUnit()
  const walDirectory = join(directory, 'wal')
  const wal = new LocalLogWriter({ ...system, directory: walDirectory, logger })
  await wal.start()
  wal.configure('log', { segmentBytes: 1024 * MiB, segmentMaxAgeMs: 3_600_000, seqAbove: -1 })
  const lines = Array.from({ length: records }, (_, n) => `{"n":${n},"more":"${'x'.repeat(100)}"}\n`).join('')
  await wal.append('log', {
    ...{ layout: 'lines', receivedAtMicros: Date.now() * 1000, recordCount: records },
    envelope: encodeEnvelope({ protocol: 'http' }),
    payload: [Buffer.from(lines)],
  })
  await wal.stop(AbortSignal.timeout(10_000))
  const segments = new LocalSegmentSource({ ...system, directory: walDirectory })
  const [listed] = await segments.list()
  const segment = await segments.open(must(listed, 'a segment'))
  const packed = join(directory, 'segment.wal.zst')
  await compressTo(packed, segment.content(), never)
  await segment.close()
  const stores = new FaultyStores(join(directory, 'buckets'))
  const { key } = unit.source.artifact
  const { bytes, sha256 } = await describeFile(packed, never)
  await stores.open(unit.target).putFile(key, packed, { contentType: '', metadata: {}, sha256 })
  stores.done.length = 0
  const source = { ...unit.source, artifact: { key, bytes, rows: records, sha256 } }
  const options = {
    memoryBytes: 256 * MiB,
    builds: new FairSlots({ capacity: 1, clock: systemClock }),
    stores,
    conditionalOf: conditionalPutsByDestination(logger),
    runner: new ConversionRunner({
      ...system,
      pool: conversionPool,
      segments: new LocalSegmentSource({ ...system, directory: walDirectory }),
      scratch: directory,
    }),
    ...system,
    scratch: directory,
  }
  return { unit: { ...unit, source }, stores, options }
}

/** Returns the content of each object. */
async function readBucket(path: string): Promise<ReadonlyMap<string, string>> {
  const files = (await readdir(path, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const contents = files.map(async ({ parentPath, name }) => {
    const key = join(parentPath, name)
    return [key, (await readFile(key)).toString('base64')] as const
  })
  return new Map(await Promise.all(contents))
}

/** Takes a slot for live delivery. */
function takeSlot(builds: FairSlots) {
  const { promise: taken, resolve: take } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const owner = { tenant: 'live', member: 'live', weight: 1 }
  const ended = builds.run(owner, { signal: never }, () => {
    take()
    return released
  })
  return { taken, release, ended }
}

async function building(): Promise<boolean> {
  const names = await readdir(directory, { recursive: true })
  return names.some((name) => /job-\w+\/build-\w+$/.test(name))
}

describe('a unit', () => {
  test('returns its build permit as soon as live delivery wants it, and finishes afterwards', async () => {
    const { unit, options } = await furnished(300_000)
    let ended: UnitEnd | undefined
    const end = runUnit(unit, options, never).then((made) => {
      ended = made
    })
    await until('the conversion', building)
    const live = takeSlot(options.builds)
    await live.taken
    expect(ended).toBeUndefined()
    await until('the end of the conversion', async () => !(await building()))
    expect(ended).toBeUndefined()
    live.release()
    await end
    expect(ended).toMatchObject({ outcome: 'done', view: { processed: 300_000, accepted: 300_000 } })
    expect((await readdir(directory)).filter((name) => name.startsWith('job-'))).toEqual([])
  })

  test('that is repeated writes the same keys, the marker last', async () => {
    const { unit, stores, options } = await furnished(10)
    const first = await runUnit(unit, options, never)
    const { endpoint_id, id } = unit.commit
    const names = [
      `p/${endpoint_id}/views/numbers/v2/dt=2026-11-20/${id}.parquet`,
      `p/${endpoint_id}/commits/dt=2026-11-20/${id}.numbers-v2.json`,
    ]
    expect(stores.done).toEqual(names)
    expect(await runUnit(unit, options, never)).toEqual(first)
    expect(stores.done).toEqual([...names, names[0]])
    const marker = JSON.parse(await readFile(join(directory, 'buckets/bucket', names[1] ?? ''), 'utf8'))
    expect(marker).toMatchObject({
      ...{ id: `${id}.numbers-v2`, commit_id: id, kind: 'backfill', from_version: null, records: 10 },
      artifacts: { 'views/numbers/v2': { key: names[0], rows: 10, view_id: view.id, view_version: 2 } },
      views: [{ processed: 10, accepted: 10, dropped: 0, dlq: 0 }],
    })
  })

  test('that goes on after another node has repeated it changes nothing in the bucket', async () => {
    const { unit, stores, options } = await furnished(10)
    const goesOn = Promise.withResolvers<void>()
    let isHeld = false
    // It stands still before its first file. Its lease ends, and another node gets the unit.
    stores.delay = () => {
      isHeld = true
      return goesOn.promise
    }
    const late = runUnit(unit, options, never)
    await until('the file is about to be written', () => isHeld)
    stores.delay = () => undefined
    const recorded = await runUnit(
      { ...unit, lease_id: newId() },
      { ...options, conditionalOf: conditionalPutsByDestination(logger) },
      never,
    )
    const contents = () => readBucket(join(directory, 'buckets/bucket'))
    const before = await contents()
    expect(before.size).toBe(3)
    goesOn.resolve()
    expect(await late).toEqual(recorded)
    expect(await contents()).toEqual(before)
  })

  test('replaces what is in the place of its marker and is none of its files', async () => {
    const { unit, stores, options } = await furnished(10)
    const first = await runUnit(unit, options, never)
    const marker = must(first.outcome === 'done' ? first.artifacts['manifest/numbers/v2'] : undefined, 'a marker')
    const store = stores.open(unit.target)
    const stored = Buffer.from((await store.get(marker.key)) ?? []).toString()
    for (const other of ['{}', stored.replace('"rows": 10', '"rows": 9')]) {
      await store.put(marker.key, Buffer.from(other), { contentType: 'application/json', metadata: {} })
      expect(await runUnit(unit, options, never)).toMatchObject({ outcome: 'done' })
      expect(JSON.parse(Buffer.from((await store.get(marker.key)) ?? []).toString())).toMatchObject({
        artifacts: { 'views/numbers/v2': { rows: 10 } },
      })
    }
  })

  test('reports retry if the bucket fails, and failed if the view fails', async () => {
    const { unit, stores, options } = await furnished(10)
    stores.fault = (key) => (key.endsWith('.json') ? 'refused' : undefined)
    expect(await runUnit(unit, options, never)).toMatchObject({ outcome: 'retry', reason: expect.stringContaining('SlowDown') })
    stores.fault = (key) => (key.endsWith('.json') ? 'not stored' : undefined)
    expect(await runUnit(unit, options, never)).toMatchObject({
      outcome: 'retry',
      reason: expect.stringContaining('but does not have'),
    })
    const broken = { ...view, definition: { columns: [{ name: 'n', type: 'NO_SUCH_TYPE', path: '$.n' }] } }
    expect(await runUnit({ ...unit, view: broken }, options, never)).toMatchObject({ outcome: 'failed', records: 10 })
    const gone = { ...unit.source, artifact: { ...unit.source.artifact, key: 'p/gone' } }
    expect(await runUnit({ ...unit, source: gone }, options, never)).toMatchObject({
      outcome: 'failed',
      reason: 'p/gone is no longer in the bucket',
      records: 0,
    })
  })

  test('fails if its view ends the conversion process, and live conversions go on', async () => {
    const { unit, options } = await furnished(10)
    const runner = new ConversionRunner({
      ...system,
      pool: new FaultyConversions(),
      segments: new LocalSegmentSource({ ...system, directory }),
      scratch: directory,
    })
    const greedy = { ...unit, view: { ...view, name: 'greedy' } }
    expect(await runUnit(greedy, { ...options, runner }, never)).toMatchObject({
      ...{ outcome: 'failed', records: 10, reason: expect.stringContaining('exceeded the memory or file size') },
    })
    expect(await runUnit(unit, { ...options, runner }, never)).toMatchObject({ outcome: 'done' })
    // A process can also die for a reason of the node.
    const fragile = { ...unit, view: { ...view, name: 'fragile' } }
    expect(await runUnit(fragile, { ...options, runner }, never)).toMatchObject({ outcome: 'done' })
  })

  // Needs root, and the programs of util-linux.
  test.skipIf(!canChangeUser)('is converted as another user (needs root)', async () => {
    const { unit, options } = await furnished(10)
    const confined = await sandbox.as({ uid: 65_534, gid: 65_534 })
    const access = new WorkerAccess({ directory, user: confined.user })
    const commandLine = confined.confine(conversionBounds(192 * MiB))
    const pool = createConversionPool({ clock: systemClock, commandLine, cwd: access.startDirectory })
    await access.prepare()
    const runner = new ConversionRunner({
      ...system,
      pool,
      segments: new LocalSegmentSource({ ...system, directory: directory }),
      scratch: directory,
      access,
    })
    const end = await runUnit(unit, { ...options, runner }, never)
    await pool.stop()
    expect(end).toMatchObject({ outcome: 'done', view: { processed: 10, accepted: 10 } })
    expect((await readdir(directory)).filter((name) => name.startsWith('job-'))).toEqual([])
  })

  test('rejects a source that has changed since its delivery, and never downloads a larger one', async () => {
    const { unit, stores, options } = await furnished(10)
    const { key, bytes } = unit.source.artifact
    const store = stores.open(unit.target)
    const put = (body: Buffer) => store.put(key, body, { contentType: '', metadata: {} })
    await put(Buffer.alloc(bytes))
    expect(await runUnit(unit, options, never)).toMatchObject({ outcome: 'failed', reason: expect.stringContaining('SHA-256') })
    await put(Buffer.alloc(bytes + 1))
    expect(await runUnit(unit, options, never)).toMatchObject({
      outcome: 'failed',
      reason: `${key} has changed since it was delivered: it has ${bytes + 1} bytes instead of ${bytes}`,
    })
  })

  test('is tried again if its source is damaged on the disk of the node while it is read', async () => {
    const { unit, stores, options } = await furnished(10)
    const pool = damagingConversions((task) => (task.kind === 'unit' ? task.sourcePath : undefined))
    const segments = new LocalSegmentSource({ ...system, directory: join(directory, 'wal') })
    const runner = new ConversionRunner({ ...system, pool, segments, scratch: directory })
    const { key } = unit.source.artifact
    expect(await runUnit(unit, { ...options, runner }, never)).toEqual({
      outcome: 'retry',
      reason: `the copy of ${key} on this node was damaged while it was read`,
    })
    expect(stores.done).toEqual([])
    expect(await runUnit(unit, options, never)).toMatchObject({ outcome: 'done' })
  })

  test('throws only when it is aborted, and leaves no files behind', async () => {
    const { unit, options } = await furnished(10)
    const live = takeSlot(options.builds)
    const abort = new AbortController()
    const end = runUnit(unit, options, abort.signal)
    await until('the download', async () =>
      (await readdir(directory, { recursive: true })).some((name) => name.endsWith('/source')),
    )
    abort.abort(new Error('enough'))
    await expect(end).rejects.toThrow('enough')
    live.release()
    expect((await readdir(directory)).filter((name) => name.startsWith('job-'))).toEqual([])
  })
})

/** Stands in for the part of control that leases units. */
class LeasingControl {
  readonly requests: LeaseRequest[] = []
  readonly reports: UnitReport[] = []
  units: Unit[] = []
  away = false
  /** Whether leases can be renewed. */
  good = true

  async leaseUnits(request: LeaseRequest): Promise<Leases> {
    this.requests.push(request)
    if (this.away) throw new Error('away')
    return { units: this.units.splice(0, request.max), held: this.good ? request.holding : [], more: false }
  }

  async reportUnits({ reports }: { readonly reports: readonly UnitReport[] }) {
    if (this.away) throw new Error('away')
    this.reports.push(...reports)
    return { results: reports.map(({ lease_id }) => ({ lease_id, result: 'recorded' as const })) }
  }
}

describe('the worker', () => {
  /** Each unit runs until it is aborted or its `running` entry is called. */
  function working(units: readonly Unit[], isConfigured = () => true) {
    const control = new LeasingControl()
    control.units = [...units]
    const clock = new ManualClock()
    const running = new Map<string, (end: UnitEnd) => void>()
    const put = new Set<string>()
    const worker = new JobWorker({
      ...system,
      ...{ nodeId: newId(), control, isConfigured, clock, logger },
      run: ({ lease_id }, signal) => {
        const { promise, resolve, reject } = Promise.withResolvers<UnitEnd>()
        running.set(lease_id, resolve)
        signal.addEventListener('abort', () => {
          put.add(lease_id)
          reject(new Error('aborted'))
        })
        return promise
      },
    })
    const polls = async (count: number) => {
      const before = control.requests.length
      while (control.requests.length < before + count) {
        clock.advance(jobWorkerLimits.pollMs)
        await new Promise(setImmediate)
      }
      await new Promise(setImmediate)
    }
    return { control, clock, worker, running, put, polls }
  }

  test('asks for nothing before the node has a configuration', async () => {
    let isConfigured = false
    const { control, clock, worker, polls } = working([], () => isConfigured)
    await worker.start()
    clock.advance(10 * jobWorkerLimits.pollMsMax)
    expect(control.requests).toEqual([])
    isConfigured = true
    await polls(1)
    await worker.stop()
  })

  test('leases only as many units as it runs at once, renews their leases, and reports each', async () => {
    const units = Array.from({ length: jobWorkerLimits.unitsParallel + 1 }, () => aUnit())
    const { control, worker, running, polls } = working(units)
    await worker.start()
    await polls(2)
    expect(control.requests.at(-1)).toMatchObject({ max: 0, holding: units.slice(0, -1).map(({ lease_id }) => lease_id) })
    const [first] = units
    running.get(first?.lease_id ?? '')?.({ outcome: 'failed', reason: 'why', records: 0 })
    await until('the last one', () => running.size === units.length)
    expect(control.reports).toMatchObject([{ lease_id: first?.lease_id, outcome: 'failed', reason: 'why' }])
    await worker.stop()
  })

  test('abandons a unit whose lease control does not renew', async () => {
    const unit = aUnit()
    const { control, worker, put, polls } = working([unit])
    await worker.start()
    await polls(2)
    expect(put.size).toBe(0)
    control.good = false
    await polls(1)
    expect([...put]).toEqual([unit.lease_id])
    await worker.stop()
    expect(control.reports).toEqual([])
  })

  test('continues while control is unreachable, and abandons a unit whose lease was not renewed in time', async () => {
    const unit = aUnit()
    const { control, clock, worker, put, polls } = working([unit])
    await worker.start()
    await polls(2)
    control.away = true
    clock.advance(leaseLimits.leaseMs - 2 * jobWorkerLimits.pollMs)
    expect(put.size).toBe(0)
    clock.advance(2 * jobWorkerLimits.pollMs)
    expect([...put]).toEqual([unit.lease_id])
    await worker.stop()
  })

  test('releases its leases when it stops', async () => {
    const units = [aUnit(), aUnit()]
    const { control, worker, put, polls } = working(units)
    await worker.start()
    await polls(1)
    await worker.stop()
    expect(put.size).toBe(2)
    expect(control.reports).toMatchObject(units.map(({ lease_id }) => ({ lease_id, outcome: 'released' })))
  })
})
