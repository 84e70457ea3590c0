/**
 * An open segment that somebody removed or cut after a crash: what is lost is counted, and stays visible until a person discards it. Nothing is
 * reported that was not acknowledged, or was delivered. Uses the disk of faulty-files.ts.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Files } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { segmentName } from '#log/local/format/segment-file.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { SealObserver } from '#log/seal-observer.ts'
import type { SegmentRef } from '../../src/log/segment-source.ts'
import { type DiskOperation, type Fault, FaultyDisk } from '../support/faulty-files.ts'
import { oneRecord } from '../support/frames.ts'
import { ManualClock } from '../support/manual-clock.ts'

const directory = '/data/wal'
const never = new AbortController().signal
let disk: FaultyDisk
let clock: ManualClock
let files: Files
let segments: LocalSegmentSource
let wal: LocalLogWriter
/** Commits that control has. */
let committed: Set<string>
let isControlAway = false
/** Reports to the observer of the log since the last start: how many frames are intact, and whether others are lost. */
let observed: (number | 'lost')[]

beforeEach(async () => {
  disk = new FaultyDisk(seededRandom(5))
  clock = new ManualClock()
  committed = new Set()
  isControlAway = false
  await restart()
})

describe('a segment that was removed', () => {
  test('is counted by what the list says, once, and stays visible until it is discarded', async () => {
    await append(10)
    await upkeep()
    await append(2)
    await killed(async () => remove(await openPath()))
    expect([wal.usage.lost, observed]).toEqual([{ segments: 1, records: 10 }, ['lost']])
    const [trace] = await segments.list()
    expect(trace).toMatchObject({ logName: 'log', seq: 0, state: 'quarantined', bytes: 0 })
    expect(trace && (await segments.quarantineNote(trace))).toMatchObject({
      reason: "the open segment's file was removed; at least 10 acknowledged records are lost",
      records_lost: 10,
    })
    // The log goes on, and later starts report nothing again.
    expect(await append()).toBe(1)
    await killed()
    expect([wal.usage.lost.segments, await states()]).toEqual([0, ['log 0 quarantined', 'log 1 sealed']])
    if (trace !== undefined) await segments.discard(trace, 'quarantined')
    await killed()
    expect([wal.usage.lost.segments, await states()]).toEqual([0, ['log 1 sealed']])
  })

  test('before a list had it: the high water shows it', async () => {
    await append(10)
    await killed(async () => remove(await openPath()))
    expect(wal.usage.lost).toEqual({ segments: 1, records: 0 })
    expect(await states()).toEqual(['log 0 quarantined'])
  })

  test('with the directory of its log', async () => {
    await append(3)
    await upkeep()
    await killed(async () => {
      for (const path of disk.paths()) if (path.includes('/log/')) await remove(path)
      await disk.mount().removeDirectory(`${directory}/log`)
    })
    expect([wal.usage.lost, await states()]).toEqual([{ segments: 1, records: 3 }, ['log 0 quarantined']])
    expect(await append()).toBe(1)
  })

  test('is asked for until control answers', async () => {
    await append(3)
    await upkeep()
    isControlAway = true
    await killed(async () => remove(await openPath()))
    expect(wal.usage.lost.segments).toBe(0)
    // Neither is it forgotten by another crash meanwhile.
    await append()
    await upkeep()
    await killed()
    expect(wal.usage.lost.segments).toBe(0)
    isControlAway = false
    await upkeep()
    expect(wal.usage.lost).toEqual({ segments: 1, records: 3 })
  })
})

describe('a segment that was cut', () => {
  test.each([
    [
      'to some of its frames',
      async (path: string) => cut(path, Math.floor(((await disk.mount().bytes(path)) ?? 0) / 2)),
      'sealed',
    ],
    ['to less than a header', (path: string) => cut(path, 100), undefined],
    ['to nothing', (path: string) => cut(path, 0), undefined],
  ] as const)('%s: the rest is delivered, and what is missing is counted', async (_, damage, left) => {
    await append(20)
    await upkeep()
    const path = await openPath()
    await killed(() => damage(path))
    const listed = await segments.list()
    const quarantined = listed.find(({ state }) => state === 'quarantined')
    const note = quarantined && (await segments.quarantineNote(quarantined))
    expect(listed.some(({ state }) => state === 'sealed') ? 'sealed' : undefined).toBe(left)
    expect(note).toMatchObject({ reason: 'cut: at least 20 records were acknowledged' })
    const sealed = listed.find(({ state }) => state === 'sealed')
    const footer = sealed && (await footerOf(sealed))
    expect(footer?.damagedRecords ?? 20).toBe(note?.records_lost)
    expect((footer?.records ?? 0) + (note?.records_lost ?? 0)).toBe(20)
    expect(observed).toEqual(footer === undefined ? ['lost'] : [footer.records, 'lost'])
    expect(wal.usage.lost).toEqual({ segments: 1, records: note?.records_lost })
  })

  test('or replaced by an older copy', async () => {
    await append(5)
    const path = await openPath()
    const copy = (await files.read(path)) ?? new Uint8Array()
    await append(15)
    await upkeep()
    await killed(async () => {
      await cut(path, 0)
      await write(path, copy)
    })
    expect([wal.usage.lost, await states()]).toEqual([{ segments: 1, records: 15 }, ['log 0 quarantined', 'log 0 sealed']])
  })

  test('a torn end that was never acknowledged is no loss', async () => {
    await append(20)
    await upkeep()
    const path = await openPath()
    await killed(async () => {
      const frame = ((await disk.mount().read(path)) ?? new Uint8Array()).subarray(200, 240)
      await write(path, frame, await disk.mount().bytes(path))
    })
    expect([wal.usage.lost.segments, await states()]).toEqual([0, ['log 0 sealed']])
    expect(observed).toEqual([20])
  })
})

test('a list that is missing or damaged is said to be so, and loses nothing', async () => {
  await append(3)
  await upkeep()
  await rotate()
  await deliver()
  await killed(() => disk.damage(`${directory}/open-segments`, (bytes) => bytes.fill(1)))
  expect([wal.usage.lost.segments, await states()]).toEqual([0, []])
  expect(await append()).toBe(1)
  await killed()
  expect([wal.usage.lost.segments, await states()]).toEqual([0, ['log 1 sealed']])
})

test('after a stop nothing is missing, whatever is removed then', async () => {
  await append(3)
  await upkeep()
  await wal.stop(never)
  await deliver(false)
  await restart()
  expect([wal.usage.lost.segments, await states()]).toEqual([0, []])
})

describe('nothing is reported', () => {
  test.each<Extract<Fault, string>>(['kill before', 'kill after', 'crash before', 'crash after'])(
    'with a %s at each step of appends, seals, deliveries and failures of the disk',
    { timeout: 60_000 },
    async (fault) => {
      const operations: DiskOperation[] = []
      for (let at = 0; operations.length <= at; at += 1) {
        disk = new FaultyDisk(seededRandom(at))
        committed = new Set()
        await restart()
        operations.length = 0
        disk.fault = (operation) => (operations.push(operation) === at + 1 ? fault : undefined)
        await work().catch(() => undefined)
        if (operations.length <= at) return
        // Crashes of the next start come on top.
        for (const again of [3, 9, 15]) {
          let count = 0
          disk.fault = () => (++count === again ? fault : undefined)
          await restart().catch(() => undefined)
        }
        disk.fault = () => undefined
        await restart()
        await upkeep()
        expect([at, operations[at], wal.usage.lost, await states('quarantined')]).toEqual([
          ...[at, operations[at], { segments: 0, records: 0 }, []],
        ])
      }
    },
  )
})

/** Life of a log: every append may fail, as after a crash. */
async function work(): Promise<void> {
  await append().catch(() => undefined)
  await upkeep()
  await append().catch(() => undefined)
  await rotate()
  await deliver()
  await append().catch(() => undefined)
  await rotate()
  await append().catch(() => undefined)
  await deliver()
  await upkeep()
}

async function restart(): Promise<void> {
  files = disk.mount()
  segments = new LocalSegmentSource({ directory, files })
  const findDelivered = async <Segment extends SegmentRef>(asked: readonly Segment[]) => {
    if (isControlAway) throw new Error('control is away')
    return asked.filter((segment) => committed.has(segmentName(segment, 'wal')))
  }
  const learnt: typeof observed = []
  observed = learnt
  const observer: SealObserver = {
    observes: () => false,
    appended: () => undefined,
    recovering: () => ({
      recovered: () => void learnt.push(Number(learnt.pop() ?? 0) + 1),
      lost: () => Promise.resolve(void learnt.push('lost')),
    }),
    beforeSeal: () => undefined,
  }
  wal = new LocalLogWriter({ directory, files, clock, findDelivered, observer, logger: createLogger('test', 'silent') })
  await wal.start()
  wal.configure('log', { segmentBytes: 100_000, segmentMaxAgeMs: 60_000, seqAbove: -1 })
  await turns()
}

/** Kills the process, changes what it left, and starts again. */
async function killed(change: () => void | Promise<void> = () => undefined): Promise<void> {
  disk.kill()
  files = disk.mount()
  await change()
  await restart()
}

async function append(count = 1): Promise<number> {
  const frames = Array.from({ length: count }, () => oneRecord({ payload: '{"a":1}' }))
  const seqs = await Promise.all(frames.map((frame) => wal.append('log', frame)))
  return seqs.at(-1)?.seq ?? -1
}

async function rotate(): Promise<void> {
  clock.advance(60_000)
  await turns()
}

async function upkeep(): Promise<void> {
  clock.advance(1_000)
  await turns()
}

/** As delivery does: the commit is recorded before the segment is removed. */
async function deliver(isRecorded = true): Promise<void> {
  const reading = new LocalSegmentSource({ directory, files: disk.mount() })
  for (const segment of await reading.list()) {
    if (segment.state !== 'sealed') continue
    if (isRecorded) committed.add(segmentName(segment, 'wal'))
    await reading.remove(segment)
  }
}

async function openPath(): Promise<string> {
  const path = disk.paths().find((each) => each.endsWith('.open'))
  if (path === undefined) throw new Error('no open segment')
  return path
}

async function remove(path: string): Promise<void> {
  await disk.mount().remove(path)
}

async function cut(path: string, bytes: number): Promise<void> {
  const file = await disk.mount().open(path, 'update')
  await file.truncate(bytes)
  await file.close()
}

async function write(path: string, bytes: Uint8Array, position = 0): Promise<void> {
  const file = await disk.mount().open(path, 'update')
  await file.write([bytes], position)
  await file.close()
}

async function footerOf(segment: SegmentRef) {
  const reader = await segments.open(segment)
  await reader.close()
  return reader.footer
}

async function states(only?: string): Promise<readonly string[]> {
  const listed = await segments.list()
  return listed
    .filter(({ state }) => only === undefined || state === only)
    .map(({ logName, seq, state }) => `${logName} ${seq} ${state}`)
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 80; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
