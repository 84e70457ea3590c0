import { expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { MemoryLogWriter } from '#log/memory/log-writer.ts'
import { MemorySegmentSource } from '#log/memory/segment-source.ts'
import { MemoryStorage } from '#log/memory/storage.ts'
import { oneRecord } from '../../../test/support/frames.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { HeldRecords } from './held-records.ts'
import { type ScannedLog, scannedLog } from './scanned-log.ts'

async function aLog() {
  const clock = new ManualClock()
  const storage = new MemoryStorage()
  const wal = new MemoryLogWriter({ storage, clock, random: seededRandom(7) })
  await wal.start()
  let opened = 0
  const segments = new (class extends MemorySegmentSource {
    override open(...args: Parameters<MemorySegmentSource['open']>) {
      opened += 1
      return super.open(...args)
    }
  })(storage, clock)
  /** `segmentBytes` of 1 seals the segment at once. */
  const append = async (segmentBytes: number) => {
    wal.configure('log', { segmentBytes, segmentMaxAgeMs: 60_000, seqAbove: -1 })
    await wal.append('log', oneRecord())
  }
  const scan = async () => {
    // The last segment is sealed after its append has resolved.
    await new Promise((resolve) => setImmediate(resolve))
    return scannedLog(await segments.readLog('log'), [])
  }
  return { clock, segments, append, scan, opened: () => opened }
}

/** Null if not all are counted. */
function sumOf(held: HeldRecords, { deliverable }: ScannedLog): number | null {
  const counts = deliverable.map((segment) => held.of(segment))
  return counts.reduce((sum, count) => (sum === null || count === null ? null : sum + count), 0)
}

test('records of sealed segments are read once, those of the open one each time', async () => {
  const { clock, segments, append, scan, opened } = await aLog()
  const held = new HeldRecords(segments, clock)
  for (let count = 0; count < 3; count += 1) await append(1)
  await append(10_000)
  const counted = async () => {
    const log = await scan()
    await held.update([log])
    return sumOf(held, log)
  }
  expect(await counted()).toBe(4)
  await append(10_000)
  expect([await counted(), opened()]).toEqual([5, 3])
})

test('a log with more segments than one scan opens has no count until all are counted', async () => {
  const { clock, segments, append, scan } = await aLog()
  const held = new HeldRecords(segments, clock)
  for (let count = 0; count < 250; count += 1) await append(1)
  const log = await scan()
  await held.update([log])
  expect(sumOf(held, log)).toBeNull()
  await held.update([log])
  expect(sumOf(held, log)).toBe(250)
})

test('a segment that cannot be read, or an unknown list of open ones, gives no count', async () => {
  const { clock, segments, append, scan } = await aLog()
  await append(1)
  await append(10_000)
  const log = await scan()
  const of = async (source: ConstructorParameters<typeof HeldRecords>[0]) => {
    const held = new HeldRecords(source, clock)
    await held.update([log])
    return sumOf(held, log)
  }
  const open = () => Promise.reject(new Error('EIO'))
  expect(await of({ open, openRecords: () => segments.openRecords() })).toBeNull()
  expect(await of({ open: (ref) => segments.open(ref), openRecords: async () => undefined })).toBeNull()
})

test('counts are as of the older of the two lists that they may be from', async () => {
  const { clock, segments, append, scan } = await aLog()
  await append(10_000)
  let lateMs: number | undefined = 100
  const openRecords = async () => (lateMs === undefined ? undefined : { ...(await segments.openRecords()), lateMs })
  const held = new HeldRecords({ open: (ref) => segments.open(ref), openRecords }, clock)
  const log = await scan()
  expect(held.countedAt).toBeUndefined()
  const times: number[] = []
  for (let looks = 0; looks < 3; looks += 1) {
    times.push(clock.now() - 100)
    await held.update([log])
    clock.advance(1_000)
  }
  expect(held.countedAt).toBe(times[1])
  lateMs = undefined
  await held.update([log])
  expect([held.countedAt, sumOf(held, log)]).toEqual([times[2], null])
})
