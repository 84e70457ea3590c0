/** Sealed segments that are damaged, and what a salvage makes of them. */
import { Buffer } from 'node:buffer'
import { beforeEach, describe, expect, test } from 'vitest'
import { FOOTER_BYTES, HEADER_BYTES, type SegmentSuffix, segmentName } from '#log/local/format/segment-file.ts'
import type { SegmentRef } from '../../src/log/segment-source.ts'
import { frameAt as frameIn, oneRecord } from '../support/frames.ts'
import { crashes, never, WalRig } from '../support/wal-rig.ts'

const names = ['a', 'b', 'c', 'd']
const recordsPerFrame = 2
let rig: WalRig
let sealed: SegmentRef
let path: string
let original: Buffer

beforeEach(() => start(11))

describe('damage costs only what is damaged', () => {
  const [a = '', b = '', c = '', d = ''] = names
  test.each([
    ['one bit of a payload', (bytes: Buffer) => flip(bytes, frameAt(1) + 60), [a, c, d], 2, [1, 2]],
    ['one bit of a length', (bytes: Buffer) => flip(bytes, frameAt(2)), [a, b, d], 2, [2, 3]],
    ['the header', (bytes: Buffer) => bytes.fill(0, 0, HEADER_BYTES), names, 0, ['start', 0]],
    ['one bit of the magic', (bytes: Buffer) => flip(bytes, 3), names, 0, ['start', 0]],
    ['header and first frame', (bytes: Buffer) => bytes.fill(0xff, 0, frameAt(1) - 9), [b, c, d], 2, ['start', 1]],
    ['one bit of the footer', (bytes: Buffer) => flip(bytes, bytes.byteLength - 5), names, 0, [4, 'end']],
    ['last frame and footer', (bytes: Buffer) => bytes.fill(0, frameAt(3) + 40), [a, b, c], 1, [3, 'end']],
    ['a frame, and the footer', (bytes: Buffer) => bytes.fill(0, bytes.byteLength - 20).fill(0, 150, 160), [b, c, d], 1, [0, 1]],
  ] as const)('%s', async (_, change, expected, recordsLost, [from, to]) => {
    rig.disk.damage(path, change)
    const damaged = await bytesOf('wal')
    await expect(read()).rejects.toMatchObject({ name: 'SegmentError' })
    expect(await rig.segments.salvage(sealed)).toMatchObject({
      outcome: 'salvaged',
      recordsLost,
      quarantine: segmentPath('quarantine'),
    })
    expect(await read()).toEqual({ names: expected, damagedRecords: recordsLost })
    expect(await bytesOf('quarantine')).toEqual(damaged)
    const [start, end] = [from === 'start' ? 0 : frameAt(from), to === 'end' ? damaged.byteLength : frameAt(to)]
    const damage = expect.arrayContaining([{ offset: start, bytes: end - start }])
    expect(await note()).toMatchObject({ records_lost: recordsLost, damage, at: new Date(rig.clock.now()).toISOString() })
    expect(await rig.states()).toEqual(['0 quarantined', '0 sealed'])
    expect(await rig.segments.salvage(sealed)).toEqual({ outcome: 'intact' })
  })

  test('a file that lost its end', async () => {
    await replace(original.subarray(0, frameAt(3) + 10))
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 1 })
    expect(await read()).toEqual({ names: ['a', 'b', 'c'], damagedRecords: 1 })
  })

  test('a file that lost a part of its footer', async () => {
    await replace(original.subarray(0, -FOOTER_BYTES + 20))
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 0 })
    expect(await read()).toEqual({ names, damagedRecords: 0 })
  })

  test('a file that lost exactly its footer', async () => {
    await replace(original.subarray(0, -FOOTER_BYTES))
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 0 })
    expect(await read()).toEqual({ names, damagedRecords: 0 })
    expect(await note()).toMatchObject({ reason: 'the footer is damaged or missing', damage: [{ offset: frameAt(4), bytes: 0 }] })
  })

  test('a frame that vanished without a trace', async () => {
    await replace(Buffer.concat([original.subarray(0, frameAt(1)), original.subarray(frameAt(2))]))
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 2 })
    expect(await read()).toEqual({ names: ['a', 'c', 'd'], damagedRecords: 2 })
  })

  test('bytes behind the footer', async () => {
    await replace(Buffer.concat([original, Buffer.alloc(700, 'x')]))
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 0 })
    expect(await bytesOf('wal')).toEqual(original)
  })

  test('damage of a salvaged segment adds up, and the first original is kept', async () => {
    rig.disk.damage(path, (bytes) => flip(bytes, frameAt(1) + 60))
    const first = await bytesOf('wal')
    await rig.segments.salvage(sealed)
    rig.disk.damage(path, (bytes) => flip(bytes, frameAt(0) + 60))
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 4 })
    expect(await read()).toEqual({ names: ['c', 'd'], damagedRecords: 4 })
    expect(await bytesOf('quarantine')).toEqual(first)
    expect(await note()).toMatchObject({ records_lost: 4 })
  })
})

test('a note whose file was removed says nothing about the next damage', async () => {
  rig.disk.damage(path, (bytes) => flip(bytes, frameAt(1) + 60))
  await rig.segments.salvage(sealed)
  await rig.files.remove(segmentPath('quarantine'))
  rig.disk.damage(path, (bytes) => flip(bytes, 20))
  await rig.segments.salvage(sealed)
  expect(await note()).toMatchObject({ reason: 'the header is damaged', damage: [{ offset: 0, bytes: HEADER_BYTES }] })
})

describe('nothing is left to deliver', () => {
  test('if no frame is intact: the original is kept with its reason', async () => {
    rig.disk.damage(path, (bytes) => bytes.fill(7, HEADER_BYTES, frameAt(4)))
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined', recordsLost: 8 })
    expect(await rig.states()).toEqual(['0 quarantined'])
    expect(await note()).toMatchObject({ reason: 'no frame is intact', records_lost: 8 })
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined', recordsLost: 8 })
  })

  test.each([0, 10, HEADER_BYTES])('if the file is cut to %i bytes: at least one record is lost', async (bytes) => {
    await replace(original.subarray(0, bytes))
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined', recordsLost: 1 })
    expect(await note()).toMatchObject({ records_lost: 1 })
  })

  test('if the file belongs to another name', async () => {
    await rig.restart()
    await replace(await bytesOf('wal', await seal('other')))
    await expect(read()).rejects.toThrow('the header belongs to another segment, other/0-')
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined' })
    expect(await note()).toMatchObject({ reason: expect.stringContaining('the header belongs to another segment, other/0-') })
  })

  test('if the header is damaged and the salt-key is gone: the file is kept, for the key may come back', async () => {
    rig.disk.damage(path, (bytes) => flip(bytes, 20))
    await rig.files.remove(`${rig.directory}/salt-key`)
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined' })
    expect(await note()).toMatchObject({ reason: expect.stringContaining('salt-key') })
  })
})

describe('a salvage that is interrupted', () => {
  test.each(crashes)('by a %s at each step, is repeated with the same result', async (fault) => {
    let steps = 0
    for (let step = 0; step === steps; step += 1) {
      await start(step)
      rig.disk.damage(path, (bytes) => flip(bytes, frameAt(1) + 60))
      const damaged = await bytesOf('wal')
      rig.failAt(step, fault)
      const isInterrupted = await rig.segments.salvage(sealed).then(
        () => false,
        () => true,
      )
      if (isInterrupted) steps += 1
      rig.heal()
      rig.mount()
      const isSalvaged = !(await bytesOf('wal')).equals(damaged)
      if (isSalvaged) expect(await bytesOf('quarantine'), `step ${step}: the original is kept`).toEqual(damaged)
      // A start of ingest removes unfinished copies.
      await rig.restart()
      expect((await rig.segments.salvage(sealed)).outcome).toBe(isSalvaged ? 'intact' : 'salvaged')
      expect(await read(), `step ${step}`).toEqual({ names: ['a', 'c', 'd'], damagedRecords: 2 })
      expect(await bytesOf('quarantine')).toEqual(damaged)
      expect(await note()).toMatchObject({ damage: [{ offset: frameAt(1), bytes: frameAt(2) - frameAt(1) }], records_lost: 2 })
      expect(rig.disk.paths().filter((name) => name.endsWith('.salvage'))).toEqual([])
    }
    expect(steps).toBeGreaterThan(15)
  })

  test.each(crashes)('by a %s while it only quarantines, is repeated with the same result', async (fault) => {
    let steps = 0
    for (let step = 0; step === steps; step += 1) {
      await start(step)
      rig.disk.damage(path, (bytes) => bytes.fill(7, HEADER_BYTES, frameAt(4)))
      const damaged = await bytesOf('wal')
      rig.failAt(step, fault)
      await rig.segments.salvage(sealed).catch(() => (steps += 1))
      rig.heal()
      rig.mount()
      expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined', recordsLost: 8 })
      expect(await bytesOf('quarantine')).toEqual(damaged)
      expect(await note()).toMatchObject({ records_lost: 8 })
    }
    expect(steps).toBeGreaterThan(10)
  })

  test.each(crashes)('by a %s during the recovery of an open file, is repeated with the same result', async (fault) => {
    let steps = 0
    for (let step = 0; step === steps; step += 1) {
      await start(step)
      await rig.files.rename(path, segmentPath('open'))
      await rig.files.syncDirectory(`${rig.directory}/log`)
      rig.disk.damage(segmentPath('open'), (bytes) => flip(bytes, frameAt(1) + 60))
      const damaged = await bytesOf('open')
      const operations = rig.failAt(step, fault)
      await rig.restart().catch(() => undefined)
      if (operations.length > step) steps += 1
      rig.heal()
      await rig.restart()
      expect(await rig.states(), `step ${step}`).toEqual(['0 quarantined', '0 sealed'])
      expect(await read(), `step ${step}`).toEqual({ names: ['a', 'c', 'd'], damagedRecords: 2 })
      expect(await bytesOf('quarantine')).toEqual(damaged)
      expect(await note()).toMatchObject({ records_lost: 2, reason: 'frames are damaged' })
    }
    expect(steps).toBeGreaterThan(20)
  })

  test('by a full disk leaves the segment as it was, and is repeated when there is room', async () => {
    rig.disk.damage(path, (bytes) => flip(bytes, frameAt(1) + 60))
    const damaged = await bytesOf('wal')
    const used = rig.disk.usedBytes()
    for (const freeBytes of [0, 100, 700, 1_000]) {
      rig.disk.capacityBytes = used + freeBytes
      await expect(rig.segments.salvage(sealed)).rejects.toMatchObject({ code: 'ENOSPC' })
      expect(await bytesOf('wal')).toEqual(damaged)
      expect(rig.disk.paths().filter((name) => /salvage|tmp/.test(name))).toEqual([])
    }
    rig.disk.capacityBytes = Number.POSITIVE_INFINITY
    expect(await rig.segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 2 })
    expect(await read()).toEqual({ names: ['a', 'c', 'd'], damagedRecords: 2 })
  })
})

async function start(seed: number): Promise<void> {
  rig = await WalRig.start({ seed, logs: ['log', 'other'] })
  sealed = await seal('log')
  path = segmentPath('wal')
  original = await bytesOf('wal')
}

async function seal(logName: string): Promise<SegmentRef> {
  for (const name of names) {
    const frame = oneRecord({ payload: Buffer.alloc(200, `${name}\n`), envelope: name, at: rig.clock.now() * 1_000 })
    await rig.wal.append(logName, { ...frame, layout: 'lines', recordCount: recordsPerFrame })
  }
  await rig.wal.stop(never)
  const found = (await rig.segments.list()).find((segment) => segment.logName === logName)
  if (found === undefined) throw new Error('no segment was sealed')
  return found
}

async function read() {
  const reader = await rig.segments.open(sealed)
  try {
    const found: string[] = []
    for await (const group of reader.frames(1_000)) found.push(...group.map(({ envelope }) => Buffer.from(envelope).toString()))
    return { names: found, damagedRecords: reader.footer.damagedRecords }
  } finally {
    await reader.close()
  }
}

async function replace(bytes: Buffer): Promise<void> {
  await rig.files.remove(path)
  const file = await rig.files.open(path, 'create')
  await file.write([bytes], 0)
  await file.sync()
  await file.close()
  await rig.files.syncDirectory(`${rig.directory}/log`)
}

function note() {
  return rig.segments.quarantineNote(sealed)
}

async function bytesOf(suffix: SegmentSuffix, segment = sealed): Promise<Buffer> {
  return Buffer.from((await rig.files.read(segmentPath(suffix, segment))) ?? [])
}

function segmentPath(suffix: SegmentSuffix, segment = sealed): string {
  return `${rig.directory}/${segment.logName}/${segmentName(segment, suffix)}`
}

/** Returns where the frame with this index starts, and for one more where the frames end. */
function frameAt(index: number): number {
  return frameIn(original, index)
}

function flip(bytes: Buffer, at: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ 0x10
}

/** Mounts the disk as a new process sees it. */
