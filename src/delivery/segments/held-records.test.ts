import { expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { MemoryLogWriter } from '#log/memory/log-writer.ts'
import { MemorySegmentSource } from '#log/memory/segment-source.ts'
import { MemoryStorage } from '#log/memory/storage.ts'
import type { OpenCounts } from '#log/segment-source.ts'
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
  const held = new HeldRecords(segments)
  for (let count = 0; count < 3; count += 1) await append(1)
  await append(10_000)
  const counted = async () => {
    const log = await scan()
    await held.update([log], clock.now())
    return sumOf(held, log)
  }
  expect(await counted()).toBe(4)
  await append(10_000)
  expect([await counted(), opened()]).toEqual([5, 3])
})

test('a log with more segments than one scan opens has no count until all are counted', async () => {
  const { clock, segments, append, scan } = await aLog()
  const held = new HeldRecords(segments)
  for (let count = 0; count < 250; count += 1) await append(1)
  const log = await scan()
  await held.update([log], clock.now())
  expect(sumOf(held, log)).toBeNull()
  await held.update([log], clock.now())
  expect(sumOf(held, log)).toBe(250)
})

test('a segment that cannot be read, or an unknown list of open ones, gives no count', async () => {
  const { clock, segments, append, scan } = await aLog()
  await append(1)
  await append(10_000)
  const log = await scan()
  const of = async (source: ConstructorParameters<typeof HeldRecords>[0]) => {
    const held = new HeldRecords(source)
    await held.update([log], clock.now())
    return sumOf(held, log)
  }
  const open = () => Promise.reject(new Error('EIO'))
  expect(await of({ open, openRecords: () => segments.openRecords() })).toBeNull()
  expect(await of({ open: (ref) => segments.open(ref), openRecords: async () => undefined })).toBeNull()
})

test('a log is counted as of the list if it has grown since, else as of the scan', async () => {
  const { clock, segments, append, scan } = await aLog()
  let list: OpenCounts | undefined
  const held = new HeldRecords({ open: (ref) => segments.open(ref), openRecords: async () => list })
  const update = async () => {
    clock.advance(1_000)
    const [scannedAt, log] = [clock.now(), await scan()]
    await held.update([log], scannedAt)
    return { scannedAt, records: sumOf(held, log) }
  }
  expect(held.countedAt('log')).toBeUndefined()
  await append(10_000)
  list = await segments.openRecords()
  const listedAt = clock.now()
  clock.advance(60_000)
  const same = await update()
  expect([held.countedAt('log'), same.records]).toEqual([same.scannedAt, 1])

  // A disk that hangs keeps ingest from writing the list, for as long as it likes.
  await append(10_000)
  const grown = await update()
  expect([held.countedAt('log'), grown.records]).toEqual([same.scannedAt, 1])
  const fresh = new HeldRecords({ open: (ref) => segments.open(ref), openRecords: async () => list })
  await fresh.update([await scan()], clock.now())
  expect(fresh.countedAt('log')).toBe(listedAt)

  list = undefined
  expect([(await update()).records, held.countedAt('log')]).toEqual([null, same.scannedAt])
  list = await segments.openRecords()
  const counted = await update()
  expect([held.countedAt('log'), counted.records]).toEqual([counted.scannedAt, 2])
})

test('a segment in no list is as of the older of the two last lists', async () => {
  const { clock, segments, append, scan } = await aLog()
  let list = await segments.openRecords()
  const held = new HeldRecords({ open: (ref) => segments.open(ref), openRecords: async () => list })
  const listedAt = list.atMs
  await held.update([], clock.now())
  clock.advance(1_000)
  list = await segments.openRecords()
  clock.advance(1_000)
  await append(10_000)
  const log = await scan()
  await held.update([log], clock.now())
  expect([held.countedAt('log'), sumOf(held, log)]).toEqual([listedAt, 0])
})
