/** Segment files that are removed or replaced under the process that writes them, on the real disk and on the one of faulty-files.ts. */
import { Buffer } from 'node:buffer'
import { cp, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { FaultyDisk } from '../support/faulty-files.ts'
import { oneRecord } from '../support/frames.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const never = new AbortController().signal

describe('on the real disk', () => {
  test.each<[string, (directory: string) => Promise<unknown>]>([
    ['its file is removed', async (directory) => rm(await openFile(directory))],
    ['its directory is removed', (directory) => rm(join(directory, 'log'), { recursive: true })],
    ['the WAL directory is removed', (directory) => rm(directory, { recursive: true })],
    [
      'another file takes its name',
      async (directory) => {
        const path = await openFile(directory)
        await writeFile(`${path}.new`, 'foreign')
        await rename(`${path}.new`, path)
      },
    ],
  ])('%s: everything acknowledged before and after is kept', async (_, vanish) => {
    await using log = await RealLog.start()
    for (const name of ['a', 'b']) expect(await log.append(name)).toBe(0)
    await vanish(log.directory)
    expect(await log.append('c')).toBe(0)
    expect(await log.append('d')).toBe(1)
    expect(log.wal.usage.rewrittenSegments).toBe(1)
    expect(log.wal.health().healthy).toBe(true)
    expect(log.wal.blocked()).toEqual([])
    await log.wal.stop(never)
    expect(await log.stored()).toEqual({ a: 0, b: 0, c: 0, d: 1 })
  })

  test.each<[string, (directory: string) => Promise<unknown>]>([
    ['its file is removed', async (directory) => rm(await openFile(directory))],
    ['its directory is moved away', (directory) => rename(join(directory, 'log'), join(directory, 'moved+'))],
    [
      'its directory is replaced by a copy',
      async (directory) => {
        await cp(join(directory, 'log'), join(directory, 'copy+'), { recursive: true })
        await rename(join(directory, 'log'), join(directory, 'moved+'))
        await rename(join(directory, 'copy+'), join(directory, 'log'))
      },
    ],
  ])('%s: noticed when it is sealed, without another append', async (_, vanish) => {
    await using log = await RealLog.start()
    for (const name of ['a', 'b']) await log.append(name)
    await vanish(log.directory)
    log.clock.advance(60_000)
    await until('the rescue', () => log.wal.usage.rewrittenSegments === 1)
    await log.wal.stop(never)
    expect(await log.stored()).toEqual({ a: 0, b: 0 })
  })

  test('its file is removed before the first group: that group is kept', async () => {
    const files: Files = {
      ...systemFiles,
      open: async (path, mode) => {
        const file = await systemFiles.open(path, mode)
        if (path.endsWith('.open')) await rm(path)
        return file
      },
    }
    await using log = await RealLog.start(files)
    expect(await log.append('a')).toBe(0)
    expect(await log.append('b')).toBe(1)
    expect(await log.stored()).toEqual({ a: 0, b: 1 })
  })
})

describe('on a disk that fails as well', () => {
  test('nothing is acknowledged, and nothing overtakes it, until its records are written again', async () => {
    const { disk, clock, log } = await unlinkedLog()
    disk.fault = ({ path }) => (path.endsWith('.salvage') ? { error: 'ENOSPC' } : undefined)
    await expect(log.append('b')).rejects.toMatchObject({ reason: 'disk_full' })
    await expect(log.append('c')).rejects.toMatchObject({ reason: 'disk_full' })
    clock.advance(1_000)
    await turns()
    expect(log.wal.blocked()).toEqual([
      { logName: 'log', reason: expect.stringMatching('was removed while it was in use.*do not stop ingest') },
    ])
    disk.fault = () => undefined
    clock.advance(1_000)
    await turns()
    expect(log.wal.usage.rewrittenSegments).toBe(1)
    expect(await log.append('d')).toBe(1)
    expect(log.wal.blocked()).toEqual([])
    await log.wal.stop(never)
    // The client sends b again: it was durable, but not in a file that has a name.
    expect(await log.stored()).toEqual({ a: 0, b: 0, d: 1 })
  })

  test('a group whose fdatasync fails on a removed file: what was acknowledged before is kept', async () => {
    const { disk, log } = await unlinkedLog()
    disk.fault = ({ kind, path }) => (kind === 'sync' && path.endsWith('.open') ? { error: 'EIO' } : undefined)
    await expect(log.append('b')).rejects.toMatchObject({ reason: 'io_error' })
    disk.fault = () => undefined
    expect(await log.append('c')).toBe(1)
    await log.wal.stop(never)
    expect(await log.stored()).toEqual({ a: 0, c: 1 })
  })

  test.each([true, false])('a stop writes its records again, also at the deadline (%s)', async (isLate) => {
    const { disk, log } = await unlinkedLog()
    disk.fault = ({ path }) => (path.endsWith('.salvage') ? { error: 'EIO' } : undefined)
    await expect(log.append('b')).rejects.toMatchObject({ reason: 'io_error' })
    disk.fault = () => undefined
    await log.wal.stop(isLate ? AbortSignal.abort() : never)
    expect(await log.stored()).toEqual({ a: 0, b: 0 })
  })

  test('a log that is closed waits until its records are written again', async () => {
    const { disk, clock, files, log } = await unlinkedLog()
    disk.fault = ({ path }) => (path.endsWith('.salvage') ? { error: 'EIO' } : undefined)
    void log.wal.end('log', 'closed')
    const segments = new LocalSegmentSource({ directory: '/data/wal', files })
    for (let time = 0; time < 3; time += 1) {
      await turns()
      clock.advance(1_000)
    }
    expect(await segments.readLog('log')).toMatchObject({ isClosed: false, segments: [] })
    expect(log.wal.blocked()).toEqual([{ logName: 'log', reason: expect.stringContaining('do not stop ingest') }])
    disk.fault = () => undefined
    clock.advance(1_000)
    await turns()
    expect(await segments.readLog('log')).toMatchObject({ isClosed: true, segments: [{ state: 'sealed' }] })
    expect(await log.stored()).toEqual({ a: 0 })
  })

  test('with a crash at each step of the rescue: only what was not acknowledged is missing', async () => {
    for (let at = 0; ; at += 1) {
      const disk = new FaultyDisk(seededRandom(at))
      let files = disk.mount()
      const log = await newLog('/data/wal', files, new ManualClock())
      await log.append('a')
      await removeOpen(disk, files)
      let operations = 0
      disk.fault = () => (operations++ === at ? 'crash before' : undefined)
      const isAcknowledged = await log.append('b').then(
        () => true,
        () => false,
      )
      disk.fault = () => undefined
      files = disk.mount()
      const next = await newLog('/data/wal', files, new ManualClock())
      if (isAcknowledged) expect(await next.stored()).toEqual({ a: 0, b: 0 })
      if (operations <= at) return
      await next.wal.stop(never)
    }
  })
})

type TestLog = { readonly wal: LocalLogWriter; append(name: string): Promise<number>; stored(): Promise<Record<string, number>> }

async function newLog(directory: string, files: Files, clock: ManualClock): Promise<TestLog> {
  const wal = new LocalLogWriter({ directory, files, clock, logger: createLogger('test', 'silent') })
  await wal.start()
  wal.configure('log', { segmentBytes: 100_000, segmentMaxAgeMs: 60_000, seqAbove: -1 })
  return {
    wal,
    append: async (name) => {
      const frame = oneRecord({ payload: Buffer.alloc(5_000, name), envelope: name })
      return (await wal.append('log', frame)).seq
    },
    stored: async () => {
      await wal.stop(never)
      const found: Record<string, number> = {}
      const segments = new LocalSegmentSource({ directory, files })
      for (const segment of await segments.list()) {
        if (segment.state === 'quarantined') continue
        const reader = await segments.open(segment)
        for await (const frames of reader.frames(1_000))
          for (const { envelope } of frames) found[Buffer.from(envelope).toString()] = segment.seq
        await reader.close()
      }
      return found
    },
  }
}

/** Returns a log on a faulty disk, whose open segment with the record `a` was removed. */
async function unlinkedLog() {
  const disk = new FaultyDisk(seededRandom(5))
  const clock = new ManualClock()
  const files = disk.mount()
  const log = await newLog('/data/wal', files, clock)
  await log.append('a')
  await removeOpen(disk, files)
  return { disk, clock, files, log }
}

class RealLog implements AsyncDisposable {
  readonly directory: string
  readonly clock: ManualClock
  readonly wal: LocalLogWriter
  readonly append: TestLog['append']
  readonly stored: TestLog['stored']
  readonly #root: string

  private constructor(root: string, directory: string, clock: ManualClock, { wal, append, stored }: TestLog) {
    this.#root = root
    this.directory = directory
    this.clock = clock
    this.wal = wal
    this.append = append
    this.stored = stored
  }

  static async start(files: Files = systemFiles): Promise<RealLog> {
    const root = await mkdtemp(join(tmpdir(), 'inlet-unlinked-'))
    const directory = join(root, 'wal')
    const clock = new ManualClock()
    return new RealLog(root, directory, clock, await newLog(directory, files, clock))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.wal.stop(never)
    await rm(this.#root, { recursive: true, force: true })
  }
}

async function openFile(directory: string): Promise<string> {
  const names = await readdir(join(directory, 'log'))
  return join(directory, 'log', names.find((name) => name.endsWith('.open')) ?? 'missing')
}

async function removeOpen(disk: FaultyDisk, files: Files): Promise<void> {
  for (const path of disk.paths()) if (path.endsWith('.open')) await files.remove(path)
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
