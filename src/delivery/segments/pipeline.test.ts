import { expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { MemoryLogWriter } from '#log/memory/log-writer.ts'
import { MemorySegmentSource } from '#log/memory/segment-source.ts'
import { MemoryStorage } from '#log/memory/storage.ts'
import { oneRecord } from '../../../test/support/frames.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { Endpoints } from './endpoints.ts'
import { Pipeline } from './pipeline.ts'

const logger = createLogger('test', 'silent')

/** Runs a pipeline on logs in memory whose segments have one frame each. */
async function aPipeline(
  onScan: (clock: ManualClock) => void = () => undefined,
  readable: (logName: string) => boolean = () => true,
) {
  const clock = new ManualClock()
  const storage = new MemoryStorage()
  const random = seededRandom(7)
  const wal = new MemoryLogWriter({ storage, clock, random })
  const segments = new (class extends MemorySegmentSource {
    scans = 0
    override logNames() {
      this.scans += 1
      onScan(clock)
      return super.logNames()
    }
    override readLog(logName: string) {
      return readable(logName) ? super.readLog(logName) : Promise.reject(new Error('EIO'))
    }
  })(storage, clock)
  const delivered: string[] = []
  const pipeline = new Pipeline({
    ...{ nodeId: 'node', segments, endpoints: new Endpoints(), clock, random, logger },
    parked: { read: async () => new Map() },
    fence: { reason: undefined, whenOpen: async () => undefined },
    deliver: async ({ segment, turn }) => {
      await turn
      delivered.push(`${segment.logName}/${segment.seq}`)
      return 'committed'
    },
    isReported: () => false,
    reportingBlockedBy: () => null,
  })
  const append = async (logName: string, segmentBytes = 1) => {
    wal.configure(logName, { segmentBytes, segmentMaxAgeMs: 60_000, seqAbove: -1 })
    await wal.append(logName, oneRecord())
  }
  const deliver = (count: number) =>
    until('the delivery', () => {
      clock.advance(10)
      return delivered.length === count
    })
  await wal.start()
  await pipeline.start()
  const stop = async () => {
    const stopped = pipeline.stop(AbortSignal.abort())
    clock.advance(60_000)
    await stopped
  }
  return { clock, pipeline, segments, append, deliver, delivered, [Symbol.asyncDispose]: stop }
}

test('a log is looked into when it reports a segment, however long the scan of all others takes', async () => {
  // As a thousand logs do.
  await using rig = await aPipeline((clock) => clock.advance(1_000))
  await until('the first scan', () => rig.segments.scans === 1)
  for (const count of [1, 2]) {
    await rig.append('log')
    await rig.deliver(count)
  }
  expect(rig.delivered).toEqual(['log/0', 'log/1'])
  expect(rig.segments.scans).toBe(1)
})

test('says as of when its counts are while logs cannot be listed, or one of them cannot be read', async () => {
  let isUp = true
  let hasFailed = false
  const unreadable = new Set<string>()
  await using rig = await aPipeline(
    () => {
      if (!isUp) hasFailed = true
      if (!isUp) throw new Error('EIO')
    },
    (logName) => !unreadable.has(logName),
  )
  const { clock, pipeline, append } = rig
  const scanned = async () => {
    const before = rig.segments.scans
    await until('two scans', () => {
      clock.advance(300)
      return rig.segments.scans >= before + 2
    })
  }
  for (const log of ['one', 'two']) await append(log, 10_000)
  await scanned()
  unreadable.add('one')
  await scanned()
  const rows = () => new Map(pipeline.lag().map((lag) => [lag.endpoint_id, lag]))
  const read = rows().get('one')?.counted_at
  expect([read, rows().get('two')?.counted_at]).toEqual([expect.stringMatching(/Z$/), undefined])
  await scanned()
  expect(rows().get('one')?.counted_at).toBe(read)
  expect(pipeline.countedAt).toBeGreaterThan(Date.parse(read ?? ''))

  isUp = false
  await until('a scan that fails', () => {
    clock.advance(300)
    return hasFailed && pipeline.problem !== null
  })
  const countedAt = pipeline.countedAt
  clock.advance(60_000)
  expect(pipeline.countedAt).toBe(countedAt)
})
