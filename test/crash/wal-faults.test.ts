/** The local engine on a disk that fails, fills up or lies. What every engine promises is in log-engines.test.ts. */
import type { Buffer } from 'node:buffer'
import { beforeEach, describe, expect, test } from 'vitest'
import type { DiskOperation, Fault } from '../support/faulty-files.ts'
import { frameAt } from '../support/frames.ts'
import { logSettings, never, WalRig } from '../support/wal-rig.ts'

let rig: WalRig

beforeEach(async () => {
  rig = await WalRig.start()
})

describe('group commit', () => {
  test('frames of one turn share one write and one fdatasync', async () => {
    const operations = counting()
    await Promise.all(Array.from({ length: 50 }, (_, id) => rig.append(String(id))))
    expect(operations.filter(({ kind, path }) => kind === 'sync' && path.endsWith('.open')).length).toBe(1)
    expect(operations.filter(({ kind, path }) => kind === 'write' && path.endsWith('.open')).length).toBe(1)
  })

  test('a frame is acknowledged only after its file name and the high-water mark are durable', async () => {
    const operations = counting()
    await rig.append('first')
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
    await rig.append('before')
    fail('sync', '.open', { error: 'EIO' })
    await expect(rig.append('lost')).rejects.toMatchObject({ reason: 'io_error' })
    expect(rig.wal.blocked()).toEqual([{ logName: 'log', reason: 'new data is refused: the disk failed (EIO)' }])
    const operations = counting()
    expect(await rig.append('after')).toBe(1)
    expect(rig.wal.blocked()).toEqual([])
    await rig.pass(1_000)
    expect(operations.filter(({ kind, path }) => kind === 'sync' && /000000000000.*(open|poisoned)$/.test(path))).toEqual([])
    rig.disk.crash()
    await rig.restart()
    await rig.wal.stop(never)
    expect(await rig.deliver()).toEqual({ before: 0, after: 1 })
  })

  test('delivers nothing twice that was rejected and sent again, also if the process is killed at once', async () => {
    await rig.append('before')
    fail('sync', '.open', { error: 'EIO' })
    await expect(rig.append('rejected')).rejects.toMatchObject({ reason: 'io_error' })
    expect(await rig.append('again')).toBe(1)
    rig.disk.kill()
    await rig.restart()
    await rig.wal.stop(never)
    expect(await rig.deliver()).toEqual({ before: 0, again: 1 })
  })

  test('on the first group leaves no file behind', async () => {
    fail('sync', '.open', { error: 'EIO' })
    await expect(rig.append('lost')).rejects.toMatchObject({ reason: 'io_error' })
    expect(await rig.states()).toEqual([])
    expect(await rig.append('after')).toBe(1)
  })

  test('during a seal only costs a copy', async () => {
    await rig.append('a')
    fail('sync', '.open', { error: 'EIO' })
    await rig.pass(60_000)
    expect(rig.disk.paths().filter((path) => path.endsWith('.poisoned')).length).toBe(1)
    await rig.pass(1_000)
    expect(await rig.states()).toEqual(['0 sealed'])
    expect(await rig.deliver()).toEqual({ a: 0 })
  })

  test('costs no record if the rename that marks the segment says that it failed, and was done', async () => {
    await rig.append('a')
    fail('sync', '.open', { error: 'EIO' })
    fail('rename', '.open', { error: 'EIO', isDone: true })
    await expect(rig.append('lost')).rejects.toMatchObject({ reason: 'io_error' })
    expect(await rig.append('b')).toBe(1)
    await rig.pass(1_000)
    expect(rig.disk.paths().filter((path) => /poisoned|quarantine/.test(path))).toEqual([])
    await rig.wal.stop(never)
    expect(await rig.deliver()).toEqual({ a: 0, b: 1 })
  })

  test('during a recovery is not repeated on the same file', async () => {
    await rig.append('a')
    rig.disk.crash()
    fail('sync', '.open', { error: 'EIO' })
    await rig.restart()
    expect(await rig.states()).toEqual(['0 open'])
    await rig.pass(1_000)
    rig.disk.crash()
    rig.mount()
    expect(await rig.deliver()).toEqual({ a: 0 })
  })
})

describe('a full disk', () => {
  test.each(['ENOSPC', 'EDQUOT'])('%s: the frame is rejected, and the file is cut back and stays open', async (error) => {
    await rig.append('a')
    fail('write', '.open', { error, written: 700 })
    await expect(rig.append('rejected', 2_000)).rejects.toMatchObject({ reason: 'disk_full' })
    expect(rig.wal.health()).toMatchObject({ healthy: false, reasons: [expect.stringContaining('disk_full')] })
    expect(await rig.append('b')).toBe(0)
    expect(rig.wal.health().healthy).toBe(true)
    await rig.wal.stop(never)
    expect(await rig.deliver()).toEqual({ a: 0, b: 0 })
  })

  test('rejects every append, delivers what is sealed, and recovers by itself even without appends', async () => {
    await rig.append('a')
    rig.disk.capacityBytes = rig.disk.usedBytes()
    for (let time = 0; time < 20; time += 1) await expect(rig.append('rejected')).rejects.toMatchObject({ reason: 'disk_full' })
    await rig.pass(60_000)
    expect(rig.wal.health().healthy).toBe(false)
    expect(await rig.states()).toEqual(['0 open'])
    rig.disk.capacityBytes = Number.POSITIVE_INFINITY
    await rig.pass(1_000)
    expect(rig.wal.health().healthy).toBe(true)
    expect(await rig.states()).toEqual(['0 sealed'])
    expect(await rig.append('b')).toBe(1)
    expect(rig.disk.paths().filter((path) => path.endsWith('probe'))).toEqual([])
  })

  test('before the first segment uses up no seq', async () => {
    rig.disk.capacityBytes = rig.disk.usedBytes()
    for (let time = 0; time < 5; time += 1) await expect(rig.append('rejected')).rejects.toMatchObject({ reason: 'disk_full' })
    rig.disk.capacityBytes = Number.POSITIVE_INFINITY
    expect(await rig.append('a')).toBe(0)
  })

  test('poisons a segment that cannot be cut back', async () => {
    await rig.append('a')
    fail('write', '.open', { error: 'ENOSPC', written: 700 })
    fail('truncate', '.open', { error: 'EIO' })
    await expect(rig.append('rejected')).rejects.toMatchObject({ reason: 'disk_full' })
    expect(await rig.append('b')).toBe(1)
    await rig.wal.stop(never)
    expect(await rig.deliver()).toEqual({ a: 0, b: 1 })
  })
})

describe('damage', () => {
  test.each([
    ['a frame in the middle', (bytes: Buffer) => bytes.fill(0, 600, 700), ['a', 'c']],
    ['a length', (bytes: Buffer) => bytes.fill(0xff, frameAt(bytes, 1), frameAt(bytes, 1) + 4), ['a', 'c']],
    ['the header', (bytes: Buffer) => bytes.fill(0, 0, 128), ['a', 'b', 'c']],
    ['header and first frame', (bytes: Buffer) => bytes.fill(0, 0, 300), ['b', 'c']],
  ] as const)('of %s: intact frames are delivered, the file is kept in quarantine', async (_, change, expected) => {
    for (const name of ['a', 'b', 'c']) await rig.append(name, 400)
    const path = rig.openPath()
    rig.disk.crash()
    rig.disk.damage(path, change)
    await rig.restart()
    expect(await rig.states()).toEqual(['0 quarantined', '0 sealed'])
    expect(Object.keys(await rig.deliver())).toEqual(expected)
    expect(await rig.append('next')).toBe(1)
  })

  test('of the last frame counts as a torn tail and is cut', async () => {
    for (const name of ['a', 'b', 'c']) await rig.append(name, 400)
    const path = rig.openPath()
    rig.disk.crash()
    rig.disk.damage(path, (bytes) => bytes.fill(0, bytes.byteLength - 5))
    await rig.restart()
    expect(await rig.states()).toEqual(['0 sealed'])
    expect(await rig.deliver()).toEqual({ a: 0, b: 0 })
  })

  test('of a frame in a file with a footer that was not renamed yet', async () => {
    for (const name of ['a', 'b']) await rig.append(name, 400)
    fail('rename', '.open', 'crash before')
    await rig.wal.stop(never)
    const path = rig.openPath()
    rig.disk.damage(path, (bytes) => bytes.fill(0, frameAt(bytes, 1) + 40, frameAt(bytes, 1) + 50))
    await rig.restart()
    expect(await rig.states()).toEqual(['0 quarantined', '0 sealed'])
    expect(await rig.deliver()).toEqual({ a: 0 })
  })
})

describe('the seq', () => {
  test('continues from the file names when the high-water mark is lost, or damaged and nobody can be asked', async () => {
    await rig.append('a')
    await rig.wal.stop(never)
    await rig.files.remove(`${rig.directory}/log/high-water`)
    await rig.restart()
    expect(await rig.append('b')).toBe(1)
    await rig.wal.stop(never)
    rig.disk.damage(`${rig.directory}/log/high-water`, (bytes) => bytes.fill(0))
    await rig.restart()
    expect(await rig.append('c')).toBe(2)
  })

  test.each(['nothing', 'a segment that was set aside'])(
    'waits for control when its mark is damaged and %s is left',
    async (left) => {
      let isAway = true
      const committed = { log: -1 }
      const findCommittedSeqs = async () => {
        if (isAway) throw new Error('control is away')
        return committed
      }
      await rig.restart({ findCommittedSeqs })
      for (const seq of [0, 1, 2]) {
        expect(await rig.append()).toBe(seq)
        await rig.wal.stop(never)
        const [first] = await rig.segments.list()
        if (seq === 0 && first !== undefined && left !== 'nothing') await rig.segments.quarantine(first, 'set aside')
        await rig.deliver()
        await rig.restart()
      }
      committed.log = 2
      await rig.wal.stop(never)
      rig.disk.damage(`${rig.directory}/log/high-water`, (bytes) => bytes.fill(0, 0, 1))
      await rig.restart()
      await rig.upkeep()
      await expect(rig.append('rejected')).rejects.toMatchObject({ reason: 'io_error' })
      expect(rig.wal.blocked()).toMatchObject([{ logName: 'log', reason: expect.stringContaining('high-water') }])
      expect(rig.wal.health().healthy).toBe(true)
      isAway = false
      await rig.upkeep()
      expect(await rig.append('later')).toBe(3)
      expect(rig.wal.blocked()).toEqual([])
      await rig.wal.stop(never)
      expect(await rig.deliver()).toEqual({ later: 3 })
    },
  )

  test('is known once control was asked after a directory became readable, not before', async () => {
    let committed = 0
    await rig.append('a')
    await rig.wal.stop(never)
    rig.disk.damage(`${rig.directory}/log/high-water`, (bytes) => bytes.fill(0))
    fail('list', '/log', { error: 'EIO' })
    await rig.restart({ findCommittedSeqs: async () => ({ log: committed }) })
    rig.wal.configure('log', { ...logSettings, seqAbove: committed })
    await rig.deliver()
    committed = 7
    await expect(rig.append('rejected')).rejects.toMatchObject({ reason: 'io_error' })
    await rig.upkeep()
    expect(await rig.append('b')).toBe(8)
  })

  test('continues from control’s last commit when the directory is lost', async () => {
    rig.wal.configure('log', { ...logSettings, seqAbove: 76 })
    expect(await rig.append('a')).toBe(77)
  })

  test('a log rejects appends while its directory cannot be read', async () => {
    await rig.append('a')
    rig.disk.crash()
    // The start lists the directory first, then the append does.
    fail('list', '/log', { error: 'EIO' })
    fail('list', '/log', { error: 'EIO' })
    await rig.restart()
    await expect(rig.append('rejected')).rejects.toMatchObject({ reason: 'io_error' })
    expect(await rig.append('b')).toBe(1)
  })
})

/** Makes the next operation of this kind on a path with this suffix fail. Calls add up. */
function fail(kind: DiskOperation['kind'], suffix: string, fault: Fault): void {
  const others = rig.disk.fault
  let isDue = true
  rig.disk.fault = (operation) => {
    if (!isDue || operation.kind !== kind || !operation.path.endsWith(suffix)) return others(operation)
    isDue = false
    return fault
  }
}

function counting(): readonly DiskOperation[] {
  const operations: DiskOperation[] = []
  const others = rig.disk.fault
  rig.disk.fault = (operation) => {
    operations.push(operation)
    return others(operation)
  }
  return operations
}
