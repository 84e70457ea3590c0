/**
 * A log that cannot go on says so, and others are not affected.
 *
 * Law: new data is accepted as long as the log's directory can be read. What came before it is never overtaken: delivery waits for it.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import type { DiskOperation } from '../support/faulty-files.ts'
import { WalRig } from '../support/wal-rig.ts'

let rig: WalRig

beforeEach(async () => {
  rig = await WalRig.start({ logs: ['log', 'other'] })
})

/** Leaves an open file behind, after a kill. Returns its path. */
async function leaveOpenFile(): Promise<string> {
  await rig.append('a')
  const path = rig.openPath()
  rig.disk.kill()
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
      rig.disk.fault = (operation) =>
        operation.kind === kind && /0000-.*(open|poisoned|salvage)$/.test(operation.path) ? { error } : undefined
      await rig.restart()
      expect(rig.wal.blocked()).toEqual([
        {
          logName: 'log',
          reason: expect.stringMatching(
            new RegExp(
              `^later data is stored, but its delivery waits for log/000000000000-\\w+\\.(open|poisoned), which cannot be recovered \\(${error}\\): make it`,
            ),
          ),
        },
      ])
      expect(rig.wal.health().healthy).toBe(true)
      rig.disk.fault = (operation) =>
        operation.kind === kind && /0000-.*(poisoned|salvage)$/.test(operation.path) ? { error } : undefined
      expect(await rig.append('b')).toBe(1)
      expect(await rig.append('c', 100, 'other')).toBe(0)
      await rig.upkeep()
      expect(rig.wal.blocked().length).toBe(1)
      expect(await rig.states()).toEqual(['0 open', '1 open'])
      rig.heal()
      await rig.upkeep()
      expect(rig.wal.blocked()).toEqual([])
      expect(await rig.states()).toEqual(['0 sealed', '1 open'])
    },
  )

  test('of another format version: is left as it is', async () => {
    const path = await leaveOpenFile()
    const { crc32c } = await import('@node-rs/crc32')
    rig.disk.damage(path, (bytes) => {
      bytes.writeUInt16LE(999, 8)
      bytes.writeUInt32LE(crc32c(bytes.subarray(0, 124)), 124)
    })
    const before = await rig.files.read(path).catch(() => undefined)
    await rig.restart()
    expect(rig.wal.blocked()).toEqual([
      { logName: 'log', reason: expect.stringContaining('written by another version of Inlet') },
    ])
    expect(rig.openPath()).toBe(path)
    expect(await rig.append('b')).toBe(1)
    await rig.files.rename(path, `${path}.moved`)
    await rig.upkeep()
    expect([before, rig.wal.blocked()]).toEqual([undefined, []])
    expect(await rig.states()).toEqual(['1 open'])
  })

  test('and that is moved away: later data is delivered', async () => {
    await leaveOpenFile()
    rig.disk.fault = ({ kind, path }) => (kind === 'open' && path.includes('0000-') ? { error: 'EACCES' } : undefined)
    await rig.restart()
    await rig.files.remove(rig.disk.paths().find((path) => path.endsWith('.poisoned')) ?? '')
    await rig.upkeep()
    expect(rig.wal.blocked()).toEqual([])
  })

  test.each([0, 1, 127])('but has only %i bytes: is removed, although it cannot be opened', async (bytes) => {
    const path = await leaveOpenFile()
    rig.mount()
    const file = await rig.files.open(path, 'update')
    await file.truncate(bytes)
    rig.disk.fault = (operation) => (operation.kind === 'open' && operation.path === path ? { error: 'EACCES' } : undefined)
    await rig.restart()
    expect(rig.wal.blocked()).toEqual([])
    expect(await rig.states()).toEqual([])
    expect(await rig.append('b')).toBe(1)
  })
})

test.each<[string, DiskOperation['kind'], RegExp]>([
  ['whose first group failed', 'sync', /open$/],
  ['whose seq could not be stored', 'rename', /high-water/],
])('an empty file %s, and that cannot be removed at first: is removed later', async (_, kind, pattern) => {
  await rig.restart()
  rig.disk.fault = (operation) =>
    (operation.kind === kind && pattern.test(operation.path)) || operation.kind === 'remove' ? { error: 'EIO' } : undefined
  await expect(rig.append('a')).rejects.toMatchObject({ reason: 'io_error' })
  rig.disk.fault = ({ kind: operation }) => (operation === 'remove' ? { error: 'EIO' } : undefined)
  await rig.upkeep()
  expect(await rig.states()).toEqual(['0 open'])
  rig.heal()
  await rig.upkeep()
  expect(await rig.states()).toEqual([])
  expect(await rig.append('b')).toBe(1)
})

test('a directory that cannot be read: only its log is refused, and it is recovered without an append', async () => {
  await leaveOpenFile()
  rig.disk.fault = ({ kind, path }) => (kind === 'list' && path === `${rig.directory}/log` ? { error: 'EACCES' } : undefined)
  await rig.restart()
  expect(rig.wal.blocked()).toEqual([{ logName: 'log', reason: expect.stringContaining('cannot be read (EACCES)') }])
  await expect(rig.append('b')).rejects.toMatchObject({ reason: 'io_error' })
  await rig.pass(0)
  expect(rig.wal.health().healthy).toBe(true)
  expect(await rig.append('c', 100, 'other')).toBe(0)
  rig.heal()
  await rig.upkeep()
  expect(await rig.states()).toEqual(['0 sealed'])
  await rig.upkeep(30)
  expect(rig.wal.blocked()).toEqual([])
})

describe('writes that fail', () => {
  test('in one log: the node stays healthy, and the log is reported until it works again, or nobody writes to it', async () => {
    rig.disk.fault = ({ kind, path }) => (kind === 'sync' && path.includes('/log/') ? { error: 'EIO' } : undefined)
    await expect(rig.append('a')).rejects.toMatchObject({ reason: 'io_error' })
    await rig.pass(0)
    expect(rig.wal.health().healthy).toBe(true)
    expect(await rig.append('b', 100, 'other')).toBe(0)
    await rig.upkeep(5)
    expect(rig.wal.blocked()).toEqual([{ logName: 'log', reason: 'new data is refused: the disk failed (EIO)' }])
    await rig.upkeep(30)
    expect(rig.wal.blocked()).toEqual([])
  })

  test.each(['EIO', 'EROFS'])(
    'everywhere with %s: the node is not healthy until a write beside the logs is durable',
    async (error) => {
      rig.disk.fault = ({ kind, path }) => ((kind === 'sync' || kind === 'open') && !path.endsWith('wal') ? { error } : undefined)
      await expect(rig.append('a')).rejects.toMatchObject({ reason: 'io_error' })
      await rig.pass(0)
      expect(rig.wal.health()).toEqual({ healthy: false, reasons: [`io_error: the disk failed (${error})`] })
      await rig.upkeep(5)
      expect(rig.wal.health().healthy).toBe(false)
      rig.heal()
      await rig.upkeep()
      expect(rig.wal.health().healthy).toBe(true)
    },
  )
})

test('removed segments are noticed although the directory of another log cannot be read', async () => {
  for (const logName of ['log', 'other']) await rig.append('a', 100, logName)
  await rig.pass(60_000)
  rig.disk.fault = ({ kind, path }) => (kind === 'list' && path === `${rig.directory}/log` ? { error: 'EIO' } : undefined)
  const bytes = rig.wal.usage.bytes
  for (const segment of (await rig.segments.readLog('other')).segments) await rig.segments.remove(segment)
  await rig.upkeep()
  expect(rig.wal.usage.bytes).toBe(bytes / 2)
})
