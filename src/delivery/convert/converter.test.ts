import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { Semaphore } from '#lib/semaphore.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { Frame } from '#wal/frame.ts'
import { aBoundView, aDestination, anEndpointTo } from '../../../test/support/delivery-node.ts'
import { until } from '../../../test/support/until.ts'
import { CrashLedger } from '../crash-ledger.ts'
import type { DeliveryRun } from '../delivery-run.ts'
import { DestinationBackoff } from '../destination-backoff.ts'
import { Endpoints } from '../endpoints.ts'
import type { OpenSegment, SegmentSource } from '../segments.ts'
import { ThrottledWarnings } from '../throttled-warnings.ts'
import { ConfigurationCheck } from './configuration-check.ts'
import { Converter } from './converter.ts'

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

/** Starts the conversion of a segment of each of `logs` endpoints with a required view that always fails. `onRetry` is called during each retry. */
async function failing(logs: number, slots: number, onRetry: (builds: Semaphore) => void | Promise<void>) {
  const endpoint = () => {
    const views = [aBoundView({ definition: broken, is_required: true })]
    return anEndpointTo(aDestination(), { output_formats: ['parquet', 'parquet_views'], views })
  }
  const listed = Array.from({ length: logs }, endpoint)
  const endpoints = new Endpoints()
  endpoints.update({ epoch: 1, endpoints: listed })
  const builds = new Semaphore(slots)
  const failures = new Map(listed.map(({ id }) => [id, 0]))
  const segments = {
    has: async () => true,
    async open(header): Promise<OpenSegment> {
      return {
        ...{ header, footer: { records: 1, sealedAtMicros: Date.now() * 1000, damagedRecords: 0 }, bytes: 100 },
        async *frames() {
          if (failures.get(header.logName) !== 0) await onRetry(builds)
          yield [frame]
        },
        async *content() {},
        close: async () => undefined,
      }
    },
  } as Partial<SegmentSource> as SegmentSource
  const logger = createLogger('test', 'silent')
  const clock = { ...systemClock, setTimer: (callback: () => void) => systemClock.setTimer(callback, 1) }
  const crashes = new CrashLedger({ directory: join(scratch, 'crashes'), files: systemFiles, clock })
  await crashes.load()
  const converter = new Converter({
    ...{ nodeId: newId(), scratch, memoryBytes: 64 * MiB, builds, crashes, endpoints, segments, clock, logger },
    backoff: new DestinationBackoff({ clock }),
    configuration: new ConfigurationCheck({ isCurrent: async () => true, endpoints, clock, logger }),
    warnings: new ThrottledWarnings({ clock, logger }),
  })
  const conversions = listed.map(async ({ id: logName }) => {
    const run: DeliveryRun = {
      ...{ segment: { logName, incarnation: 'abcdefghij', seq: 0 }, mayBeCommitted: false, turn: Promise.resolve() },
      signal: stop.signal,
      report: (_, failingView) => {
        if (failingView !== undefined) failures.set(logName, (failures.get(logName) ?? 0) + 1)
      },
    }
    await converter.convert(await converter.readFacts(run), run)
  })
  return {
    failures: () => [...failures.values()],
    async end() {
      stop.abort(new Error('the process stops'))
      for (const { reason } of (await Promise.allSettled(conversions)) as PromiseRejectedResult[])
        expect(reason).toMatchObject({ message: 'the process stops' })
    },
  }
}

test('a retry of a required view that fails gives its slot to a segment that wants it', async () => {
  const wanted = Promise.withResolvers<Disposable>()
  const { failures, end } = await failing(
    1,
    1,
    (builds) => void builds.acquire(1, stop.signal).then(wanted.resolve, wanted.reject),
  )
  using _permit = await wanted.promise
  const before = failures()
  for (let times = 0; times < 20; times += 1) await setImmediate()
  expect(failures()).toEqual(before)
  await end()
})

test('retries together leave a slot to others', async () => {
  let running = 0
  let most = 0
  const { failures, end } = await failing(3, 2, async () => {
    running += 1
    most = Math.max(most, running)
    // Long enough for another one to start, if it may.
    for (let times = 0; times < 5_000 && most < 2; times += 1) await setImmediate()
    running -= 1
  })
  await until('retries of each', () => failures().every((each) => each > 2))
  expect(most).toBe(1)
  await end()
})
