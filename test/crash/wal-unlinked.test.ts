/** Segment files that are removed or replaced under the process that writes them, on the real disk and on the one of faulty-files.ts. */
import { cp, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { until } from '../support/until.ts'
import { never, WalRig } from '../support/wal-rig.ts'

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
    const rig = await realLog()
    for (const name of ['a', 'b']) expect(await rig.append(name)).toBe(0)
    await vanish(rig.directory)
    expect(await rig.append('c')).toBe(0)
    expect(await rig.append('d')).toBe(1)
    expect(rig.wal.usage.salvagedSegments).toBe(1)
    expect(rig.wal.health().healthy).toBe(true)
    expect(rig.wal.blocked()).toEqual([])
    expect(await stored(rig)).toEqual({ a: 0, b: 0, c: 0, d: 1 })
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
    const rig = await realLog()
    for (const name of ['a', 'b']) await rig.append(name)
    await vanish(rig.directory)
    rig.clock.advance(60_000)
    await until('the rescue', () => rig.wal.usage.salvagedSegments === 1)
    expect(await stored(rig)).toEqual({ a: 0, b: 0 })
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
    const rig = await realLog(files)
    expect(await rig.append('a')).toBe(0)
    expect(await rig.append('b')).toBe(1)
    expect(await stored(rig)).toEqual({ a: 0, b: 1 })
  })
})

describe('on a disk that fails as well', () => {
  test('nothing is acknowledged, and nothing overtakes it, until its records are written again', async () => {
    const rig = await unlinkedLog()
    rig.disk.fault = ({ path }) => (path.endsWith('.salvage') ? { error: 'ENOSPC' } : undefined)
    await expect(rig.append('b')).rejects.toMatchObject({ reason: 'disk_full' })
    await expect(rig.append('c')).rejects.toMatchObject({ reason: 'disk_full' })
    await rig.upkeep()
    expect(rig.wal.blocked()).toEqual([
      { logName: 'log', reason: expect.stringMatching('was removed while it was in use.*do not stop ingest') },
    ])
    rig.heal()
    await rig.upkeep()
    expect(rig.wal.usage.salvagedSegments).toBe(1)
    expect(await rig.append('d')).toBe(1)
    expect(rig.wal.blocked()).toEqual([])
    // The client sends b again: it was durable, but not in a file that has a name.
    expect(await stored(rig)).toEqual({ a: 0, b: 0, d: 1 })
  })

  test('a group whose fdatasync fails on a removed file: what was acknowledged before is kept', async () => {
    const rig = await unlinkedLog()
    rig.disk.fault = ({ kind, path }) => (kind === 'sync' && path.endsWith('.open') ? { error: 'EIO' } : undefined)
    await expect(rig.append('b')).rejects.toMatchObject({ reason: 'io_error' })
    rig.heal()
    expect(await rig.append('c')).toBe(1)
    expect(await stored(rig)).toEqual({ a: 0, c: 1 })
  })

  test.each([true, false])('a stop writes its records again, also at the deadline (%s)', async (isLate) => {
    const rig = await unlinkedLog()
    rig.disk.fault = ({ path }) => (path.endsWith('.salvage') ? { error: 'EIO' } : undefined)
    await expect(rig.append('b')).rejects.toMatchObject({ reason: 'io_error' })
    rig.heal()
    await rig.wal.stop(isLate ? AbortSignal.abort() : never)
    expect(await stored(rig)).toEqual({ a: 0, b: 0 })
  })

  test('a log that is closed waits until its records are written again', async () => {
    const rig = await unlinkedLog()
    rig.disk.fault = ({ path }) => (path.endsWith('.salvage') ? { error: 'EIO' } : undefined)
    void rig.wal.end('log', 'closed')
    await rig.upkeep(3)
    expect(await rig.segments.readLog('log')).toMatchObject({ isClosed: false, segments: [] })
    expect(rig.wal.blocked()).toEqual([{ logName: 'log', reason: expect.stringContaining('do not stop ingest') }])
    rig.heal()
    await rig.upkeep()
    expect(await rig.segments.readLog('log')).toMatchObject({ isClosed: true, segments: [{ state: 'sealed' }] })
    expect(await stored(rig)).toEqual({ a: 0 })
  })

  test('with a crash at each step of the rescue: only what was not acknowledged is missing', async () => {
    for (let at = 0; ; at += 1) {
      const rig = await unlinkedLog(at)
      const operations = rig.failAt(at, 'crash before')
      const isAcknowledged = await rig.append('b').then(
        () => true,
        () => false,
      )
      rig.heal()
      await rig.restart()
      if (isAcknowledged) expect(await stored(rig)).toEqual({ a: 0, b: 0 })
      if (operations.length <= at) return
      await rig.wal.stop(never)
    }
  })
})

/** Returns a log on a faulty disk, whose open segment with the record `a` was removed. */
async function unlinkedLog(seed = 5): Promise<WalRig> {
  const rig = await WalRig.start({ seed })
  await rig.append('a')
  await rig.files.remove(rig.openPath())
  return rig
}

async function realLog(files: Files = systemFiles): Promise<WalRig> {
  const root = await mkdtemp(join(tmpdir(), 'inlet-unlinked-'))
  const rig = await WalRig.start({ directory: join(root, 'wal'), files })
  onTestFinished(async () => {
    await rig.wal.stop(never)
    await rm(root, { recursive: true, force: true })
  })
  return rig
}

async function stored(rig: WalRig): Promise<Record<string, number>> {
  await rig.wal.stop(never)
  return await rig.deliver()
}

async function openFile(directory: string): Promise<string> {
  const names = await readdir(join(directory, 'log'))
  return join(directory, 'log', names.find((name) => name.endsWith('.open')) ?? 'missing')
}
