/** The local engine on a disk that fails, fills up or lies. What every engine promises is in log-engines.test.ts. */
import { Buffer } from 'node:buffer'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Files } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter, type LocalLogWriterOptions } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { FrameInput } from '../../src/log/frame.ts'
import { type DiskOperation, type Fault, FaultyDisk } from '../support/faulty-files.ts'
import { oneRecord } from '../support/frames.ts'
import { ManualClock } from '../support/manual-clock.ts'

const directory = '/data/wal'
const never = new AbortController().signal
let disk: FaultyDisk
let clock: ManualClock
let files: Files
let wal: LocalLogWriter
let segments: LocalSegmentSource

beforeEach(async () => {
  disk = new FaultyDisk(seededRandom(7))
  clock = new ManualClock()
  wal = await newWal()
})

describe('group commit', () => {
  test('frames of one turn share one write and one fdatasync', async () => {
    const operations = counting()
    await Promise.all(Array.from({ length: 50 }, (_, id) => append(String(id))))
    expect(operations.filter(({ kind, path }) => kind === 'sync' && path.endsWith('.open')).length).toBe(1)
    expect(operations.filter(({ kind, path }) => kind === 'write' && path.endsWith('.open')).length).toBe(1)
  })

  test('a frame is acknowledged only after its file name and the high-water mark are durable', async () => {
    const operations = counting()
    await append('first')
    const order = operations.map(
      ({ kind, path }) => `${kind} ${path.replace(/.*\//, '').replace(/\d+-\w+(\.tmp)?$|-\w{10}/, '')}`,
    )
    const last = (start: string) => order.findLastIndex((line) => line.startsWith(start))
    expect(last('sync high-water')).toBeLessThan(last('rename high-water'))
    expect(last('rename high-water')).toBeLessThan(last('syncDirectory log'))
    expect(last('syncDirectory log')).toBeLessThan(last('write 000000000000.open'))
    expect(last('write 000000000000.open')).toBeLessThan(last('sync 000000000000.open'))
  })
})

describe('an fdatasync that fails', () => {
  test('poisons the segment: it is never synced again, the log continues in a new one, and acknowledged frames are delivered', async () => {
    await append('before')
    fail('sync', '.open', { error: 'EIO' })
    await expect(append('lost')).rejects.toMatchObject({ reason: 'io_error' })
    expect(wal.blocked()).toEqual([{ logName: 'log', reason: 'new data is refused: the disk failed (EIO)' }])
    const operations = counting()
    expect(await append('after')).toBe(1)
    expect(wal.blocked()).toEqual([])
    clock.advance(1_000)
    await turns()
    expect(operations.filter(({ kind, path }) => kind === 'sync' && /000000000000.*(open|poisoned)$/.test(path))).toEqual([])
    disk.crash()
    wal = await newWal()
    await wal.stop(never)
    expect(await delivered()).toEqual({ before: 0, after: 1 })
  })

  test('on the first group leaves no file behind', async () => {
    fail('sync', '.open', { error: 'EIO' })
    await expect(append('lost')).rejects.toMatchObject({ reason: 'io_error' })
    expect(await states()).toEqual([])
    expect(await append('after')).toBe(1)
  })

  test('during a seal only costs a copy', async () => {
    await append('a')
    fail('sync', '.open', { error: 'EIO' })
    clock.advance(60_000)
    await turns()
    expect(disk.paths().filter((path) => path.endsWith('.poisoned')).length).toBe(1)
    clock.advance(1_000)
    await turns()
    expect(await states()).toEqual(['sealed'])
    expect(await delivered()).toEqual({ a: 0 })
  })

  test('during a recovery is not repeated on the same file', async () => {
    await append('a')
    disk.crash()
    fail('sync', '.open', { error: 'EIO' })
    wal = await newWal()
    expect(await states()).toEqual(['open'])
    clock.advance(1_000)
    await turns()
    disk.crash()
    mount()
    expect(await delivered()).toEqual({ a: 0 })
  })
})

describe('a full disk', () => {
  test.each(['ENOSPC', 'EDQUOT'])('%s: the frame is rejected, and the file is cut back and stays open', async (error) => {
    await append('a')
    fail('write', '.open', { error, written: 700 })
    await expect(append('rejected', 2_000)).rejects.toMatchObject({ reason: 'disk_full' })
    expect(wal.health()).toMatchObject({ healthy: false, reasons: [expect.stringContaining('disk_full')] })
    expect(await append('b')).toBe(0)
    expect(wal.health().healthy).toBe(true)
    await wal.stop(never)
    expect(await delivered()).toEqual({ a: 0, b: 0 })
  })

  test('rejects every append, delivers what is sealed, and recovers by itself even without appends', async () => {
    await append('a')
    disk.capacityBytes = disk.usedBytes()
    for (let time = 0; time < 20; time += 1) await expect(append('rejected')).rejects.toMatchObject({ reason: 'disk_full' })
    clock.advance(60_000)
    await turns()
    expect(wal.health().healthy).toBe(false)
    expect(await states()).toEqual(['open'])
    disk.capacityBytes = Number.POSITIVE_INFINITY
    clock.advance(1_000)
    await turns()
    expect(wal.health().healthy).toBe(true)
    expect(await states()).toEqual(['sealed'])
    expect(await append('b')).toBe(1)
    expect(disk.paths().filter((path) => path.endsWith('probe'))).toEqual([])
  })

  test('before the first segment uses up no seq', async () => {
    disk.capacityBytes = disk.usedBytes()
    for (let time = 0; time < 5; time += 1) await expect(append('rejected')).rejects.toMatchObject({ reason: 'disk_full' })
    disk.capacityBytes = Number.POSITIVE_INFINITY
    expect(await append('a')).toBe(0)
  })

  test('poisons a segment that cannot be cut back', async () => {
    await append('a')
    fail('write', '.open', { error: 'ENOSPC', written: 700 })
    fail('truncate', '.open', { error: 'EIO' })
    await expect(append('rejected')).rejects.toMatchObject({ reason: 'disk_full' })
    expect(await append('b')).toBe(1)
    await wal.stop(never)
    expect(await delivered()).toEqual({ a: 0, b: 1 })
  })
})

describe('damage', () => {
  test.each([
    ['a frame in the middle', (bytes: Buffer) => bytes.fill(0, 600, 700), ['a', 'c']],
    ['a length', (bytes: Buffer) => bytes.fill(0xff, frameAt(bytes, 1), frameAt(bytes, 1) + 4), ['a', 'c']],
    ['the header', (bytes: Buffer) => bytes.fill(0, 0, 128), ['a', 'b', 'c']],
    ['header and first frame', (bytes: Buffer) => bytes.fill(0, 0, 300), ['b', 'c']],
  ] as const)('of %s: intact frames are delivered, the file is kept in quarantine', async (_, change, expected) => {
    for (const name of ['a', 'b', 'c']) await append(name, 400)
    const [path = ''] = disk.paths().filter((name) => name.endsWith('.open'))
    disk.crash()
    disk.damage(path, change)
    wal = await newWal()
    expect(await states()).toEqual(['quarantined', 'sealed'])
    expect(Object.keys(await delivered())).toEqual(expected)
    expect(await append('next')).toBe(1)
  })

  test('of the last frame counts as a torn tail and is cut', async () => {
    for (const name of ['a', 'b', 'c']) await append(name, 400)
    const [path = ''] = disk.paths().filter((name) => name.endsWith('.open'))
    disk.crash()
    disk.damage(path, (bytes) => bytes.fill(0, bytes.byteLength - 5))
    wal = await newWal()
    expect(await states()).toEqual(['sealed'])
    expect(await delivered()).toEqual({ a: 0, b: 0 })
  })

  test('of a frame in a file with a footer that was not renamed yet', async () => {
    for (const name of ['a', 'b']) await append(name, 400)
    fail('rename', '.open', 'crash before')
    await wal.stop(never)
    const [path = ''] = disk.paths().filter((name) => name.endsWith('.open'))
    disk.damage(path, (bytes) => bytes.fill(0, frameAt(bytes, 1) + 40, frameAt(bytes, 1) + 50))
    wal = await newWal()
    expect(await states()).toEqual(['quarantined', 'sealed'])
    expect(await delivered()).toEqual({ a: 0 })
  })
})

describe('the seq', () => {
  test('continues from the file names when the high-water mark is lost or damaged', async () => {
    await append('a')
    await wal.stop(never)
    await files.remove(`${directory}/log/high-water`)
    wal = await newWal()
    expect(await append('b')).toBe(1)
    await wal.stop(never)
    disk.damage(`${directory}/log/high-water`, (bytes) => bytes.fill(0))
    wal = await newWal()
    expect(await append('c')).toBe(2)
  })

  test('continues from control’s last commit when the directory is lost', async () => {
    wal.configure('log', { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: 76 })
    expect(await append('a')).toBe(77)
  })

  test('a log rejects appends while its directory cannot be read', async () => {
    await append('a')
    disk.crash()
    // The start lists the directory first, then the append does.
    fail('list', '/log', { error: 'EIO' })
    fail('list', '/log', { error: 'EIO' })
    wal = await newWal()
    await expect(append('rejected')).rejects.toMatchObject({ reason: 'io_error' })
    expect(await append('b')).toBe(1)
  })
})

async function newWal(options: Partial<LocalLogWriterOptions> = {}): Promise<LocalLogWriter> {
  mount()
  const made = new LocalLogWriter({ directory, files, clock, logger: createLogger('test', 'silent'), ...options })
  await made.start()
  made.configure('log', { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: -1 })
  return made
}

/** Mounts the disk as a new process sees it. */
function mount(): void {
  files = disk.mount()
  segments = new LocalSegmentSource({ directory, files })
}

function frame(name: string, bytes: number): FrameInput {
  return oneRecord({ payload: Buffer.alloc(bytes, name), envelope: name, at: clock.now() * 1_000 })
}

async function append(name: string, bytes = 100): Promise<number> {
  return (await wal.append('log', frame(name, bytes))).seq
}

/** Makes the next operation of this kind on a path with this suffix fail. Calls add up. */
function fail(kind: DiskOperation['kind'], suffix: string, fault: Fault): void {
  const others = disk.fault
  let isDue = true
  disk.fault = (operation) => {
    if (!isDue || operation.kind !== kind || !operation.path.endsWith(suffix)) return others(operation)
    isDue = false
    return fault
  }
}

function counting(): readonly DiskOperation[] {
  const operations: DiskOperation[] = []
  const others = disk.fault
  disk.fault = (operation) => {
    operations.push(operation)
    return others(operation)
  }
  return operations
}

async function states(): Promise<readonly string[]> {
  return (await segments.list()).map(({ state }) => state)
}

/** Reads and removes the sealed segments. Returns the seq of each frame by its name. */
async function delivered(): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  for (const segment of await segments.list()) {
    if (segment.state !== 'sealed') continue
    const reader = await segments.open(segment)
    for await (const frames of reader.frames(1_000))
      for (const { envelope } of frames) found[Buffer.from(envelope).toString()] = segment.seq
    await reader.close()
    await segments.remove(segment)
  }
  return found
}

/** Returns where the frame with this index starts. */
function frameAt(bytes: Buffer, index: number): number {
  let at = 128
  for (let before = 0; before < index; before += 1) at += 12 + bytes.readUInt32LE(at)
  return at
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
