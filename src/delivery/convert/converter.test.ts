import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { FairSlots } from '#lib/fair-slots.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { ThrottledWarnings } from '#lib/throttled-warnings.ts'
import type { Frame } from '#log/frame.ts'
import type { OpenSegment, SegmentSource } from '#log/segment-source.ts'
import { newId } from '#model/id.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { aBoundView, aDestination, anEndpointTo } from '../../../test/support/delivery-node.ts'
import { until } from '../../../test/support/until.ts'
import type { DeliveryRun } from '../segments/delivery-run.ts'
import { Endpoints } from '../segments/endpoints.ts'
import { ParkedSegments } from '../segments/parked-segments.ts'
import { buildFiles } from './build/build.ts'
import { buildInDirectory } from './build-directory.ts'
import { ConfigurationCheck } from './configuration-check.ts'
import { Converter, type ConverterOptions } from './converter.ts'

const frame: Frame = {
  ...{ layout: 'single', receivedAtMicros: 0, recordCount: 1 },
  ...{ envelope: encodeEnvelope({ protocol: 'http' }), payload: Buffer.from('{"n":1}') },
}
const broken = { columns: [{ name: 'n', type: 'NO_SUCH_TYPE', path: '$.n' }] }

let scratch = ''
let stop = new AbortController()
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'inlet-converter-'))
  stop = new AbortController()
})
afterEach(() => rm(scratch, { recursive: true }))

/** Creates a converter of one segment for each of the endpoints. The records of a segment are those that `frames` yields for its log. */
async function aConverter(listed: readonly SnapshotEndpoint[], slots: number, frames: (log: string) => OpenSegment['frames']) {
  const endpoints = new Endpoints()
  endpoints.update({ epoch: 1, endpoints: [...listed] })
  const builds = new FairSlots({ capacity: slots, clock: systemClock })
  const segments = {
    has: async () => true,
    async open(header): Promise<OpenSegment> {
      return {
        ...{ header, footer: { records: 1, sealedAtMicros: Date.now() * 1000, damagedRecords: 0 }, bytes: 100 },
        frames: frames(header.logName),
        async *content() {},
        close: async () => undefined,
      }
    },
  } as Partial<SegmentSource> as SegmentSource
  const logger = createLogger('test', 'silent')
  const clock = { ...systemClock, setTimer: (callback: () => void) => systemClock.setTimer(callback, 1) }
  const parked = new ParkedSegments({ directory: join(scratch, 'parked'), files: systemFiles, clock })
  // In this process, so that a test decides when records are read.
  const conversions: ConverterOptions['conversions'] = {
    build: (request) =>
      buildInDirectory(scratch, async (directory) =>
        buildFiles({ ...request, directory, segment: await segments.open(request.segment), viewTimeoutMs: 60_000, clock }),
      ),
    probe: async () => undefined,
  }
  const converter = new Converter({
    ...{ nodeId: newId(), conversions, memoryBytes: 64 * MiB, builds, parked, endpoints, segments, clock, logger },
    configuration: new ConfigurationCheck({ ...system, isCurrent: async () => true, endpoints, clock, logger }),
    warnings: new ThrottledWarnings({ clock, logger, intervalMs: 60_000 }),
  })
  const converting: Promise<unknown>[] = []
  return {
    builds,
    endpoints,
    convert(logName: string, report: DeliveryRun['report'] = () => undefined) {
      const run: DeliveryRun = {
        ...{ segment: { logName, incarnation: 'abcdefghij', seq: 0 }, mayBeCommitted: false, turn: Promise.resolve() },
        ...{ signal: stop.signal, report },
      }
      const converted = converter.readFacts(run).then((facts) => converter.convert(facts, run))
      converting.push(converted)
      return converted
    },
    async end() {
      stop.abort(new Error('the process stops'))
      for (const ended of await Promise.allSettled(converting))
        if (ended.status === 'rejected') expect(ended.reason).toMatchObject({ message: 'the process stops' })
    },
  }
}

/** Starts the conversion of a segment of each of `logs` endpoints with a required view that always fails. `onRetry` is called during each retry. */
async function failing(logs: number, slots: number, onRetry: (builds: FairSlots) => void | Promise<void>) {
  const listed = Array.from({ length: logs }, () => {
    const views = [aBoundView({ definition: broken, is_required: true })]
    return anEndpointTo(aDestination(), { output_formats: ['parquet', 'parquet_views'], views })
  })
  const failures = new Map(listed.map(({ id }) => [id, 0]))
  const { builds, convert, end } = await aConverter(
    listed,
    slots,
    (log) =>
      async function* () {
        if (failures.get(log) !== 0) await onRetry(builds)
        yield [frame]
      },
  )
  for (const { id } of listed) {
    const count = (_: unknown, failingView?: unknown) => {
      if (failingView !== undefined) failures.set(id, (failures.get(id) ?? 0) + 1)
    }
    convert(id, count).catch(() => undefined)
  }
  return { failures: () => [...failures.values()], end }
}

test('however long the conversions of one account take, another account gets a slot', async () => {
  const [hog, victim] = [newId(), newId()]
  const ofHog = Array.from({ length: 3 }, () => anEndpointTo(aDestination(), { account_id: hog }))
  const ofVictim = anEndpointTo(aDestination(), { account_id: victim })
  let running = 0
  const { convert, end } = await aConverter(
    [...ofHog, ofVictim],
    2,
    (log) =>
      async function* () {
        running += 1
        // Without an end, until the conversion is aborted.
        while (log !== ofVictim.id) {
          await setImmediate()
          yield []
        }
        yield [frame]
      },
  )
  for (const { id } of ofHog) convert(id).catch(() => undefined)
  await until('conversions in all slots', () => running === 2)
  const built = await convert(ofVictim.id)
  expect(built.files).toHaveLength(1)
  await until('a conversion in the slot that is free again', () => running === 4)
  await end()
})

test('detaching a view ends a conversion that contains it, and other changes do not', async () => {
  const view = aBoundView({ definition: { columns: [{ name: 'n', type: 'INTEGER', path: '$.n' }] } })
  const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet', 'parquet_views'], views: [view] })
  let started = 0
  let isEndless = true
  const { convert, endpoints, end } = await aConverter(
    [endpoint],
    1,
    () =>
      async function* () {
        started += 1
        while (isEndless) {
          await setImmediate()
          yield []
        }
        yield [frame]
      },
  )
  const converted = convert(endpoint.id)
  await until('the conversion', () => started === 1)
  endpoints.update({ epoch: 2, endpoints: [endpoint, anEndpointTo(aDestination())] })
  endpoints.update({ epoch: 3, endpoints: [{ ...endpoint, views: [view, aBoundView({ name: 'other' })] }] })
  for (let times = 0; times < 20; times += 1) await setImmediate()
  expect(started).toBe(1)
  const detached = { ...view, deactivated_at: new Date(Date.now() + 1_000).toISOString() }
  endpoints.update({ epoch: 4, endpoints: [{ ...endpoint, views: [detached] }] })
  await until('the next attempt', () => started === 2)
  isEndless = false
  expect((await converted).views).toMatchObject([{ view_id: view.view_id, accepted: 1 }])
  await end()
})

test('a retry of a required view that fails gives its slot to a segment that wants it', async () => {
  const [taken, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { failures, end } = await failing(1, 1, (builds) => {
    void builds.run({ group: 'other', member: 'other', weight: 1 }, { signal: stop.signal }, () => {
      taken.resolve()
      return released.promise
    })
  })
  await taken.promise
  const before = failures()
  for (let times = 0; times < 20; times += 1) await setImmediate()
  expect(failures()).toEqual(before)
  released.resolve()
  await end()
})
