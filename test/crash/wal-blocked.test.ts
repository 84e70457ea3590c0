/**
 * A log that cannot go on says so, and others are not affected. Uses the disk of faulty-files.ts.
 *
 * Law: new data is accepted as long as the log's directory can be read. What came before it is never overtaken: delivery waits for it.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Files } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { type DiskOperation, FaultyDisk } from '../support/faulty-files.ts'
import { oneRecord } from '../support/frames.ts'
import { ManualClock } from '../support/manual-clock.ts'

const directory = '/data/wal'
let disk: FaultyDisk
let clock: ManualClock
let files: Files
let segments: LocalSegmentSource
let wal: LocalLogWriter

beforeEach(async () => {
  disk = new FaultyDisk(seededRandom(3))
  clock = new ManualClock()
  await restart()
})

/** Leaves an open file behind, after a kill. Returns its path. */
async function leaveOpenFile(): Promise<string> {
  await append('log', 'a')
  const path = openPaths()[0] ?? ''
  disk.kill()
  return path
}

describe('an open file that cannot be recovered', () => {
  test.each<[DiskOperation['kind'], string]>([
    ['open', 'EACCES'],
    ['read', 'EIO'],
    ['sync', 'EIO'],
  ])(
    'because its %s fails with %s: is reported, holds back delivery but not new data, and is recovered when it can be',
    async (kind, error) => {
      await leaveOpenFile()
      disk.fault = (operation) =>
        operation.kind === kind && /0000-.*(open|poisoned|salvage)$/.test(operation.path) ? { error } : undefined
      await restart()
      expect(wal.blocked()).toEqual([
        {
          logName: 'log',
          reason: expect.stringMatching(
            new RegExp(
              `^later data is stored, but its delivery waits for log/000000000000-\\w+\\.(open|poisoned), which cannot be recovered \\(${error}\\): make it`,
            ),
          ),
        },
      ])
      expect(wal.health().healthy).toBe(true)
      disk.fault = (operation) =>
        operation.kind === kind && /0000-.*(poisoned|salvage)$/.test(operation.path) ? { error } : undefined
      expect(await append('log', 'b')).toBe(1)
      expect(await append('other', 'c')).toBe(0)
      await upkeep()
      expect(wal.blocked().length).toBe(1)
      expect(await states('log')).toBe('open open')
      disk.fault = () => undefined
      await upkeep()
      expect(wal.blocked()).toEqual([])
      expect(await states('log')).toBe('sealed open')
    },
  )

  test('of another format version: is left as it is', async () => {
    const path = await leaveOpenFile()
    const { crc32c } = await import('@node-rs/crc32')
    disk.damage(path, (bytes) => {
      bytes.writeUInt16LE(999, 8)
      bytes.writeUInt32LE(crc32c(bytes.subarray(0, 124)), 124)
    })
    const before = await files.read(path).catch(() => undefined)
    await restart()
    expect(wal.blocked()).toEqual([{ logName: 'log', reason: expect.stringContaining('written by another version of Inlet') }])
    expect(openPaths()).toEqual([path])
    expect(await append('log', 'b')).toBe(1)
    await files.rename(path, `${path}.moved`)
    await upkeep()
    expect([before, wal.blocked()]).toEqual([undefined, []])
    expect(await states('log')).toBe('open')
  })

  test('and that is moved away: later data is delivered', async () => {
    await leaveOpenFile()
    disk.fault = ({ kind, path }) => (kind === 'open' && path.includes('0000-') ? { error: 'EACCES' } : undefined)
    await restart()
    await files.remove(disk.paths().find((path) => path.endsWith('.poisoned')) ?? '')
    await upkeep()
    expect(wal.blocked()).toEqual([])
  })

  test.each([0, 1, 127])('but has only %i bytes: is removed, although it cannot be opened', async (bytes) => {
    const path = await leaveOpenFile()
    mount()
    const file = await files.open(path, 'update')
    await file.truncate(bytes)
    disk.fault = (operation) => (operation.kind === 'open' && operation.path === path ? { error: 'EACCES' } : undefined)
    await restart()
    expect(wal.blocked()).toEqual([])
    expect(await states('log')).toBe('')
    expect(await append('log', 'b')).toBe(1)
  })
})

test.each<[string, DiskOperation['kind'], RegExp]>([
  ['whose first group failed', 'sync', /open$/],
  ['whose seq could not be stored', 'rename', /high-water/],
])('an empty file %s, and that cannot be removed at first: is removed later', async (_, kind, pattern) => {
  await restart()
  disk.fault = (operation) =>
    (operation.kind === kind && pattern.test(operation.path)) || operation.kind === 'remove' ? { error: 'EIO' } : undefined
  await expect(append('log', 'a')).rejects.toMatchObject({ reason: 'io_error' })
  disk.fault = ({ kind: operation }) => (operation === 'remove' ? { error: 'EIO' } : undefined)
  await upkeep()
  expect(await states('log')).toBe('open')
  disk.fault = () => undefined
  await upkeep()
  expect(await states('log')).toBe('')
  expect(await append('log', 'b')).toBe(1)
})

test('a directory that cannot be read: only its log is refused, and it is recovered without an append', async () => {
  await leaveOpenFile()
  disk.fault = ({ kind, path }) => (kind === 'list' && path === `${directory}/log` ? { error: 'EACCES' } : undefined)
  await restart()
  expect(wal.blocked()).toEqual([{ logName: 'log', reason: expect.stringContaining('cannot be read (EACCES)') }])
  await expect(append('log', 'b')).rejects.toMatchObject({ reason: 'io_error' })
  await turns()
  expect(wal.health().healthy).toBe(true)
  expect(await append('other', 'c')).toBe(0)
  disk.fault = () => undefined
  await upkeep()
  expect(await states('log')).toBe('sealed')
  await upkeep(30)
  expect(wal.blocked()).toEqual([])
})

describe('writes that fail', () => {
  test('in one log: the node stays healthy, and the log is reported until it works again, or nobody writes to it', async () => {
    disk.fault = ({ kind, path }) => (kind === 'sync' && path.includes('/log/') ? { error: 'EIO' } : undefined)
    await expect(append('log', 'a')).rejects.toMatchObject({ reason: 'io_error' })
    await turns()
    expect(wal.health().healthy).toBe(true)
    expect(await append('other', 'b')).toBe(0)
    await upkeep(5)
    expect(wal.blocked()).toEqual([{ logName: 'log', reason: 'new data is refused: the disk failed (EIO)' }])
    await upkeep(30)
    expect(wal.blocked()).toEqual([])
  })

  test.each(['EIO', 'EROFS'])(
    'everywhere with %s: the node is not healthy until a write beside the logs is durable',
    async (error) => {
      disk.fault = ({ kind, path }) => ((kind === 'sync' || kind === 'open') && !path.endsWith('wal') ? { error } : undefined)
      await expect(append('log', 'a')).rejects.toMatchObject({ reason: 'io_error' })
      await turns()
      expect(wal.health()).toEqual({ healthy: false, reasons: [`io_error: the disk failed (${error})`] })
      await upkeep(5)
      expect(wal.health().healthy).toBe(false)
      disk.fault = () => undefined
      await upkeep()
      expect(wal.health().healthy).toBe(true)
    },
  )
})

test('removed segments are noticed although the directory of another log cannot be read', async () => {
  for (const logName of ['log', 'other']) await append(logName, 'a')
  clock.advance(60_000)
  await turns()
  disk.fault = ({ kind, path }) => (kind === 'list' && path === `${directory}/log` ? { error: 'EIO' } : undefined)
  const bytes = wal.usage.bytes
  for (const segment of (await segments.readLog('other')).segments) await segments.remove(segment)
  await upkeep()
  expect(wal.usage.bytes).toBe(bytes / 2)
})

function mount(): void {
  files = disk.mount()
  segments = new LocalSegmentSource({ directory, files })
}

async function restart(): Promise<void> {
  mount()
  wal = new LocalLogWriter({ directory, files, clock, logger: createLogger('test', 'silent') })
  await wal.start()
  for (const logName of ['log', 'other']) wal.configure(logName, { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: -1 })
}

async function append(logName: string, payload: string): Promise<number> {
  return (await wal.append(logName, oneRecord({ payload }))).seq
}

function openPaths(): readonly string[] {
  return disk.paths().filter((path) => path.endsWith('.open'))
}

async function states(logName: string): Promise<string> {
  const { fault } = disk
  disk.fault = () => undefined
  const found = (await segments.readLog(logName)).segments.map(({ state }) => state).join(' ')
  disk.fault = fault
  return found
}

/** Runs the WAL's upkeep. */
async function upkeep(times = 1): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    clock.advance(1_000)
    await turns()
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
