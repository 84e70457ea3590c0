import { expect, test } from 'vitest'
import { createLogger, type Logger } from '#lib/telemetry.ts'
import { MemorySegmentSource } from '#log/memory/segment-source.ts'
import { MemoryStorage, type StoredSegment } from '#log/memory/storage.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import { newId } from '#model/id.ts'
import { LeftOnDisk, leftSegmentsMax } from '#model/left-on-disk.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { LeftOnDiskReport } from './left-on-disk.ts'

const [first, second] = ['00000000-0000-4000-8000-000000000000', 'ffffffff-0000-4000-8000-000000000000']
const segmentsOfLog = 100

function aSegment(logName: string, seq: number): StoredSegment {
  const made = { incarnation: 'abcdefghij', frames: [], bytes: 100, sealedAtMicros: 0, damagedRecords: 0 }
  return { logName, seq, state: 'sealed', ...made, damaged: new Set() }
}

test('more segments than one report may have are in several reports, each segment for itself, and only changed ones are repeated', async () => {
  const storage = new MemoryStorage()
  for (let log = 0; log < leftSegmentsMax / segmentsOfLog; log += 1) {
    const name = `00000000-0000-4000-8000-${String(log).padStart(12, '0')}`
    storage.log(name).segments = Array.from({ length: segmentsOfLog }, (_, seq) => aSegment(name, seq))
  }
  storage.log(second).segments = [aSegment(second, 1), aSegment(second, 500)]
  const reports: LeftOnDisk[] = []
  const clock = new ManualClock()
  const service = new LeftOnDiskReport({
    nodeId: newId(),
    fence: { isGivenUp: true, reload: async () => undefined },
    control: {
      async reportLeftOnDisk(report) {
        reports.push(LeftOnDisk.parse(report))
        return { losses: 0 }
      },
    },
    segments: new MemorySegmentSource(storage, clock),
    clock,
    logger: createLogger('delivery', 'silent'),
  })
  await service.start()
  service.runNow()
  await until('both reports', () => reports.length === 2)
  expect(reports[0]?.segments).toHaveLength(leftSegmentsMax)
  const one = { endpoint_id: second, segments: 1, records: 0, bytes: 100 }
  const rest = [1, 500].map((seq) => ({ ...one, first_seq: seq, last_seq: seq }))
  expect(reports[1]?.segments).toEqual(rest)

  storage.log(second).segments.push(aSegment(second, 501))
  service.runNow()
  await until('the changed report', () => reports.length === 3)
  expect(reports[2]?.segments).toEqual([...rest, { ...one, first_seq: 501, last_seq: 501 }])
  await service.stop()
})

test('a machine that is stopped at once says what is left, also when only ingest has learned that it lost its place', async () => {
  const storage = new MemoryStorage()
  storage.log(first).segments = [aSegment(first, 3)]
  const reports: LeftOnDisk[] = []
  const clock = new ManualClock()
  const fence = {
    isGivenUp: false,
    async reload() {
      fence.isGivenUp = true
    },
  }
  const service = new LeftOnDiskReport({
    nodeId: newId(),
    fence,
    control: {
      async reportLeftOnDisk(report) {
        reports.push(report)
        return { losses: 1 }
      },
    },
    segments: new MemorySegmentSource(storage, clock),
    clock,
    logger: createLogger('delivery', 'silent'),
  })
  await service.start()
  await service.stop()
  expect(reports).toMatchObject([{ segments: [{ endpoint_id: first, first_seq: 3, last_seq: 3 }] }])
})

test('a log that cannot be listed keeps back no other one, and an open segment that is not counted has no count', async () => {
  const storage = new MemoryStorage()
  storage.log(first).segments = [aSegment(first, 1)]
  storage.log(second).segments = [aSegment(second, 1), { ...aSegment(second, 2), state: 'open' }]
  const clock = new ManualClock()
  const memory = new MemorySegmentSource(storage, clock)
  const segments = {
    logNames: () => memory.logNames(),
    readLog: (name: string) => (name === first ? Promise.reject(new Error('EIO')) : memory.readLog(name)),
    openRecords: () => Promise.reject(new Error('EIO')),
    open: (ref: SegmentRef) => memory.open(ref),
    quarantineNote: (ref: SegmentRef) => memory.quarantineNote(ref),
  }
  const reports: LeftOnDisk[] = []
  const control = {
    async reportLeftOnDisk(report: LeftOnDisk) {
      reports.push(LeftOnDisk.parse(report))
      return { losses: 0 }
    },
  }
  const lines: object[] = []
  const logger = { warn: (fields: object, message: string) => lines.push({ ...fields, message }) } as unknown as Logger
  const fence = { isGivenUp: true, reload: async () => undefined }
  const service = new LeftOnDiskReport({ nodeId: newId(), fence, control, segments, clock, logger })
  await service.start()
  service.runNow()
  await until('the failure', () => lines.length > 0)
  expect(lines).toMatchObject([
    { message: 'control not told what is left on this disk', err: { message: `log ${first} cannot be listed: EIO` } },
  ])
  expect(reports[0]?.segments.map(({ endpoint_id, first_seq, records }) => [endpoint_id, first_seq, records])).toEqual([
    [second, 1, 0],
    [second, 2, null],
  ])
  await service.stop()
})

test.each([
  ['of which some are missing', { segments: 2 }],
  ['of which there are none', { first_seq: 6, segments: 0 }],
  ['with a seq of thirteen digits', { last_seq: 1_000_000_000_000, segments: 999_999_999_996 }],
])('segments %s are refused', (_name, more) => {
  const segment = { endpoint_id: first, first_seq: 5, last_seq: 5, segments: 1, records: 10, bytes: 100 }
  expect(LeftOnDisk.safeParse({ node_id: newId(), segments: [segment] }).success).toBe(true)
  expect(LeftOnDisk.safeParse({ node_id: newId(), segments: [{ ...segment, ...more }] }).success).toBe(false)
})
