import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { Semaphore } from '#lib/semaphore.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { Frame } from '#wal/frame.ts'
import { aBoundView, aDestination, anEndpointTo } from '../../../test/support/delivery-node.ts'
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

test('a retry of a required view that fails gives its slot to a segment that wants it', async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'inlet-converter-'))
  const views = [aBoundView({ definition: broken, is_required: true })]
  const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet', 'parquet_views'], views })
  const endpoints = new Endpoints()
  endpoints.update({ epoch: 1, endpoints: [endpoint] })
  const builds = new Semaphore(1)
  const stop = new AbortController()
  const wanted = Promise.withResolvers<{ readonly permit: Disposable; readonly failures: number }>()
  let failures = 0
  const segments = {
    has: async () => true,
    async open(header): Promise<OpenSegment> {
      return {
        ...{ header, footer: { records: 1, sealedAtMicros: Date.now() * 1000, damagedRecords: 0 }, bytes: 100 },
        async *frames() {
          // During a retry, another segment asks for the only slot.
          const before = failures
          if (before > 0)
            builds.acquire(1, stop.signal).then((permit) => wanted.resolve({ permit, failures: before }), wanted.reject)
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
  const run: DeliveryRun = {
    segment: { logName: endpoint.id, incarnation: 'abcdefghij', seq: 0 },
    ...{ mayBeCommitted: false, turn: Promise.resolve(), signal: stop.signal },
    report: (_, failingView) => {
      if (failingView !== undefined) failures += 1
    },
  }
  const converted = converter.convert(await converter.readFacts(run), run)
  const { permit, failures: before } = await wanted.promise
  for (let times = 0; times < 20; times += 1) await setImmediate()
  expect(failures).toBe(before)
  permit[Symbol.dispose]()
  stop.abort(new Error('the process stops'))
  await expect(converted).rejects.toThrow('the process stops')
  await rm(scratch, { recursive: true })
})
