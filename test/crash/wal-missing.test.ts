/**
 * An open segment that somebody removed or cut after a crash: what is lost is counted, and stays visible until a person discards it. Nothing is
 * reported that was not acknowledged, or was delivered.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { segmentName } from '#log/local/format/segment-file.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { SealObserver } from '#log/seal-observer.ts'
import type { SegmentRef } from '../../src/log/segment-source.ts'
import { crashes, never, WalRig } from '../support/wal-rig.ts'

let rig: WalRig
/** Commits that control has. */
let committed: Set<string>
let isControlAway = false
/** Reports to the observer of the log since the last start: how many frames are intact, and whether others are lost. */
let observed: (number | 'lost')[]

beforeEach(() => start(5))

describe('a segment that was removed', () => {
  test('is counted by what the list says, once, and stays visible until it is discarded', async () => {
    await append(10)
    await rig.upkeep()
    await append(2)
    await killed(() => remove(rig.openPath()))
    expect([rig.wal.usage.lost, observed]).toEqual([{ segments: 1, records: 10 }, ['lost']])
    const [trace] = await rig.segments.list()
    expect(trace).toMatchObject({ logName: 'log', seq: 0, state: 'quarantined', bytes: 0 })
    expect(trace && (await rig.segments.quarantineNote(trace))).toMatchObject({
      reason: "the open segment's file was removed; at least 10 acknowledged records are lost",
      records_lost: 10,
    })
    // The log goes on, and later starts report nothing again.
    expect(await append()).toBe(1)
    await killed()
    expect([rig.wal.usage.lost.segments, await rig.states()]).toEqual([0, ['0 quarantined', '1 sealed']])
    if (trace !== undefined) await rig.segments.discard(trace, 'quarantined')
    await killed()
    expect([rig.wal.usage.lost.segments, await rig.states()]).toEqual([0, ['1 sealed']])
  })

  test('before a list had it: the high water shows it', async () => {
    await append(10)
    await killed(() => remove(rig.openPath()))
    expect(rig.wal.usage.lost).toEqual({ segments: 1, records: 0 })
    expect(await rig.states()).toEqual(['0 quarantined'])
  })

  test('with the directory of its log', async () => {
    await append(3)
    await rig.upkeep()
    await killed(async () => {
      for (const path of rig.disk.paths()) if (path.includes('/log/')) await remove(path)
      await rig.disk.mount().removeDirectory(`${rig.directory}/log`)
    })
    expect([rig.wal.usage.lost, await rig.states()]).toEqual([{ segments: 1, records: 3 }, ['0 quarantined']])
    expect(await append()).toBe(1)
  })

  test('is asked for until control answers', async () => {
    await append(3)
    await rig.upkeep()
    isControlAway = true
    await killed(() => remove(rig.openPath()))
    expect(rig.wal.usage.lost.segments).toBe(0)
    // Neither is it forgotten by another crash meanwhile.
    await append()
    await rig.upkeep()
    await killed()
    expect(rig.wal.usage.lost.segments).toBe(0)
    isControlAway = false
    await rig.upkeep()
    expect(rig.wal.usage.lost).toEqual({ segments: 1, records: 3 })
  })

  test('keeps its log from being closed until it is known to be lost', async () => {
    await append(3)
    await rig.upkeep()
    isControlAway = true
    await killed(() => remove(rig.openPath()))
    void rig.wal.end('log', 'closed')
    await rig.upkeep(2)
    expect(await isClosed()).toBe(false)
    isControlAway = false
    await rig.upkeep(2)
    expect([await rig.states(), await isClosed()]).toEqual([['0 quarantined'], true])
  })
})

describe('a segment that was cut', () => {
  test.each([
    [
      'to some of its frames',
      async (path: string) => cut(path, Math.floor(((await rig.disk.mount().bytes(path)) ?? 0) / 2)),
      'sealed',
    ],
    ['to less than a header', (path: string) => cut(path, 100), undefined],
    ['to nothing', (path: string) => cut(path, 0), undefined],
  ] as const)('%s: the rest is delivered, and what is missing is counted', async (_, damage, left) => {
    await append(20)
    await rig.upkeep()
    const path = rig.openPath()
    await killed(() => damage(path))
    const listed = await rig.segments.list()
    const quarantined = listed.find(({ state }) => state === 'quarantined')
    const note = quarantined && (await rig.segments.quarantineNote(quarantined))
    expect(listed.some(({ state }) => state === 'sealed') ? 'sealed' : undefined).toBe(left)
    expect(note).toMatchObject({ reason: 'cut: at least 20 records were acknowledged' })
    const sealed = listed.find(({ state }) => state === 'sealed')
    const footer = sealed && (await footerOf(sealed))
    expect(footer?.damagedRecords ?? 20).toBe(note?.records_lost)
    expect((footer?.records ?? 0) + (note?.records_lost ?? 0)).toBe(20)
    expect(observed).toEqual(footer === undefined ? ['lost'] : [footer.records, 'lost'])
    expect(rig.wal.usage.lost).toEqual({ segments: 1, records: note?.records_lost })
  })

  test('or replaced by an older copy', async () => {
    await append(5)
    const path = rig.openPath()
    const copy = (await rig.files.read(path)) ?? new Uint8Array()
    await append(15)
    await rig.upkeep()
    await killed(async () => {
      await cut(path, 0)
      await write(path, copy)
    })
    expect([rig.wal.usage.lost, await rig.states()]).toEqual([{ segments: 1, records: 15 }, ['0 quarantined', '0 sealed']])
  })

  test('a torn end that was never acknowledged is no loss', async () => {
    await append(20)
    await rig.upkeep()
    const path = rig.openPath()
    await killed(async () => {
      const frame = ((await rig.disk.mount().read(path)) ?? new Uint8Array()).subarray(200, 240)
      await write(path, frame, await rig.disk.mount().bytes(path))
    })
    expect([rig.wal.usage.lost.segments, await rig.states()]).toEqual([0, ['0 sealed']])
    expect(observed).toEqual([20])
  })
})

test('a list that is missing or damaged is said to be so, and loses nothing', async () => {
  await append(3)
  await rig.upkeep()
  await rig.pass(60_000)
  await deliver()
  await killed(() => rig.disk.damage(`${rig.directory}/open-segments`, (bytes) => bytes.fill(1)))
  expect([rig.wal.usage.lost.segments, await rig.states()]).toEqual([0, []])
  expect(await append()).toBe(1)
  await killed()
  expect([rig.wal.usage.lost.segments, await rig.states()]).toEqual([0, ['1 sealed']])
})

test('after a stop nothing is missing, whatever is removed then', async () => {
  await append(3)
  await rig.upkeep()
  await rig.wal.stop(never)
  await deliver(false)
  await restart()
  expect([rig.wal.usage.lost.segments, await rig.states()]).toEqual([0, []])
})

describe('nothing is reported', () => {
  test.each(crashes)(
    'with a %s at each step of appends, seals, deliveries and failures of the disk',
    { timeout: 60_000 },
    async (fault) => {
      for (let at = 0; ; at += 1) {
        await start(at)
        const operations = rig.failAt(at, fault)
        await work().catch(() => undefined)
        if (operations.length <= at) return
        // Crashes of the next start come on top.
        for (const again of [3, 9, 15]) {
          rig.failAt(again - 1, fault)
          await restart().catch(() => undefined)
        }
        rig.heal()
        await restart()
        await rig.upkeep()
        expect([
          at,
          operations[at],
          rig.wal.usage.lost,
          (await rig.states()).filter((state) => state.includes('quarantined')),
        ]).toEqual([...[at, operations[at], { segments: 0, records: 0 }, []]])
      }
    },
  )
})

describe('nothing is reported of a segment without a frame', () => {
  test.each(crashes)('after a %s at each step of its recovery', { timeout: 60_000 }, async (fault) => {
    for (let at = 0; ; at += 1) {
      await start(at)
      // Its header is not on the disk yet.
      rig.disk.fault = ({ kind, path }) => (kind === 'write' && path.endsWith('.open') ? 'kill before' : undefined)
      await append().catch(() => undefined)
      const operations = rig.failAt(at, fault)
      await restart().catch(() => undefined)
      rig.heal()
      await restart()
      await rig.upkeep()
      expect([at, operations[at], rig.wal.usage.lost, await rig.states()]).toEqual([
        ...[at, operations[at], { segments: 0, records: 0 }, []],
      ])
      if (operations.length <= at) return
    }
  })

  test.each([
    ['before it has a file', '.open', 'kill'],
    ['before its file is durable', 'high-water', 'crash'],
  ] as const)('after a crash %s', async (_, name, end) => {
    const files = rig.disk.mount()
    const { promise, resolve } = Promise.withResolvers<void>()
    const open: typeof files.open = async (path, mode) => {
      if (path.includes(name)) await promise
      return await files.open(path, mode)
    }
    await rig.restart({ ...hooks(), files: { ...files, open } })
    const stored = append().catch(() => undefined)
    // The list is written meanwhile.
    await rig.upkeep(2)
    rig.disk[end]()
    resolve()
    await stored
    await rig.restart({ ...hooks(), files: rig.disk.mount() })
    await rig.upkeep()
    expect([rig.wal.usage.lost.segments, await rig.states()]).toEqual([0, []])
  })

  // Such a disk does not say which files it created.
  test.each(crashes)('after a disk that failed everything, and a %s at each step afterwards', async (fault) => {
    for (let at = 0; ; at += 1) {
      await start(at)
      await append()
      rig.disk.fault = ({ kind }) => (kind === 'read' || kind === 'list' ? undefined : { error: 'EIO' })
      for (let times = 0; times < 3; times += 1) await expect(append()).rejects.toMatchObject({ reason: 'io_error' })
      isControlAway = true
      const operations = rig.failAt(at, fault)
      await rig.upkeep(2)
      await append().catch(() => undefined)
      rig.heal()
      await restart()
      isControlAway = false
      await rig.upkeep()
      const states = (await rig.states()).filter((state) => !state.includes('sealed'))
      expect([at, operations[at], rig.wal.usage.lost, states]).toEqual([at, operations[at], { segments: 0, records: 0 }, []])
      if (operations.length <= at) return
    }
  })

  test('and one that was opened while a list was written is not forgotten', async () => {
    const files = rig.disk.mount()
    let isFirst = true
    const rename: typeof files.rename = async (from, to) => {
      await files.rename(from, to)
      if (!isFirst || !to.endsWith('high-water')) return
      isFirst = false
      await rig.upkeep(2)
    }
    await rig.restart({ ...hooks(), files: { ...files, rename } })
    await append()
    rig.disk.kill()
    await remove(rig.openPath())
    await rig.restart({ ...hooks(), files: rig.disk.mount() })
    await rig.upkeep()
    expect([rig.wal.usage.lost.segments, await rig.states()]).toEqual([1, ['0 quarantined']])
  })
})

/** Life of a log: every append may fail, as after a crash. */
async function work(): Promise<void> {
  await append().catch(() => undefined)
  await rig.upkeep()
  await append().catch(() => undefined)
  await rig.pass(60_000)
  await deliver()
  await append().catch(() => undefined)
  await rig.pass(60_000)
  await append().catch(() => undefined)
  await deliver()
  await rig.upkeep()
}

async function start(seed: number): Promise<void> {
  committed = new Set()
  isControlAway = false
  rig = await WalRig.start({ seed, ...hooks() })
}

async function restart(): Promise<void> {
  await rig.restart(hooks())
  await rig.pass(0)
}

function hooks() {
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
  return { observer, findDelivered }
}

async function findDelivered<Segment extends SegmentRef>(asked: readonly Segment[]): Promise<readonly Segment[]> {
  if (isControlAway) throw new Error('control is away')
  return asked.filter((segment) => committed.has(segmentName(segment, 'wal')))
}

/** Kills the process, changes what it left, and starts again. */
async function killed(change: () => void | Promise<void> = () => undefined): Promise<void> {
  rig.disk.kill()
  rig.mount()
  await change()
  await restart()
}

async function append(count = 1): Promise<number> {
  const seqs = await Promise.all(Array.from({ length: count }, () => rig.append()))
  return seqs.at(-1) ?? -1
}

/** As delivery does: the commit is recorded before the segment is removed. */
async function deliver(isRecorded = true): Promise<void> {
  const reading = new LocalSegmentSource({ ...system, directory: rig.directory, files: rig.disk.mount() })
  for (const segment of await reading.list()) {
    if (segment.state !== 'sealed') continue
    if (isRecorded) committed.add(segmentName(segment, 'wal'))
    await reading.remove(segment)
  }
}

async function isClosed(): Promise<boolean> {
  return (await rig.segments.readLog('log')).isClosed
}

async function remove(path: string): Promise<void> {
  await rig.disk.mount().remove(path)
}

async function cut(path: string, bytes: number): Promise<void> {
  const file = await rig.disk.mount().open(path, 'update')
  await file.truncate(bytes)
  await file.close()
}

async function write(path: string, bytes: Uint8Array, position = 0): Promise<void> {
  const file = await rig.disk.mount().open(path, 'update')
  await file.write([bytes], position)
  await file.close()
}

async function footerOf(segment: SegmentRef) {
  const reader = await rig.segments.open(segment)
  await reader.close()
  return reader.footer
}
