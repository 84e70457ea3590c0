/** Sealed segments that are damaged, and what a salvage makes of them. Uses the disk of faulty-files.ts. */
import { Buffer } from 'node:buffer'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Files } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { FOOTER_BYTES, HEADER_BYTES } from '#log/local/format/segment-file.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { readQuarantineNote } from '#log/local/recover/quarantine.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { SegmentRef } from '../../src/log/segment-source.ts'
import { FaultyDisk } from '../support/faulty-files.ts'
import { ManualClock } from '../support/manual-clock.ts'

const directory = '/data/wal'
const names = ['a', 'b', 'c', 'd']
const recordsPerFrame = 2
let disk: FaultyDisk
let clock: ManualClock
let files: Files
let segments: LocalSegmentSource
let sealed: SegmentRef
let path: string
let original: Buffer

beforeEach(() => newDisk(11))

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
    disk.damage(path, change)
    const damaged = await bytesOf(path)
    await expect(read()).rejects.toMatchObject({ name: 'SegmentError' })
    expect(await segments.salvage(sealed)).toMatchObject({
      outcome: 'salvaged',
      recordsLost,
      quarantine: segmentPath('quarantine'),
    })
    expect(await read()).toEqual({ names: expected, damagedRecords: recordsLost })
    expect(await bytesOf(segmentPath('quarantine'))).toEqual(damaged)
    const [start, end] = [from === 'start' ? 0 : frameAt(from), to === 'end' ? damaged.byteLength : frameAt(to)]
    const damage = expect.arrayContaining([{ offset: start, bytes: end - start }])
    expect(await note()).toMatchObject({ records_lost: recordsLost, damage, at: new Date(clock.now()).toISOString() })
    expect(await states()).toEqual(['quarantined', 'sealed'])
    expect(await segments.salvage(sealed)).toEqual({ outcome: 'intact' })
  })

  test('a file that lost its end', async () => {
    await replace(original.subarray(0, frameAt(3) + 10))
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 1 })
    expect(await read()).toEqual({ names: ['a', 'b', 'c'], damagedRecords: 1 })
  })

  test('a file that lost a part of its footer', async () => {
    await replace(original.subarray(0, -FOOTER_BYTES + 20))
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 0 })
    expect(await read()).toEqual({ names, damagedRecords: 0 })
  })

  test('a file that lost exactly its footer', async () => {
    await replace(original.subarray(0, -FOOTER_BYTES))
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 0 })
    expect(await read()).toEqual({ names, damagedRecords: 0 })
    expect(await note()).toMatchObject({ reason: 'the footer is damaged or missing', damage: [{ offset: frameAt(4), bytes: 0 }] })
  })

  test('a frame that vanished without a trace', async () => {
    await replace(Buffer.concat([original.subarray(0, frameAt(1)), original.subarray(frameAt(2))]))
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 2 })
    expect(await read()).toEqual({ names: ['a', 'c', 'd'], damagedRecords: 2 })
  })

  test('bytes behind the footer', async () => {
    await replace(Buffer.concat([original, Buffer.alloc(700, 'x')]))
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 0 })
    expect(await bytesOf(path)).toEqual(original)
  })

  test('damage of a salvaged segment adds up, and the first original is kept', async () => {
    disk.damage(path, (bytes) => flip(bytes, frameAt(1) + 60))
    const first = await bytesOf(path)
    await segments.salvage(sealed)
    disk.damage(path, (bytes) => flip(bytes, frameAt(0) + 60))
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 4 })
    expect(await read()).toEqual({ names: ['c', 'd'], damagedRecords: 4 })
    expect(await bytesOf(segmentPath('quarantine'))).toEqual(first)
    expect(await note()).toMatchObject({ records_lost: 4 })
  })
})

test('a note whose file was removed says nothing about the next damage', async () => {
  disk.damage(path, (bytes) => flip(bytes, frameAt(1) + 60))
  await segments.salvage(sealed)
  await files.remove(segmentPath('quarantine'))
  disk.damage(path, (bytes) => flip(bytes, 20))
  await segments.salvage(sealed)
  expect(await note()).toMatchObject({ reason: 'the header is damaged', damage: [{ offset: 0, bytes: HEADER_BYTES }] })
})

describe('nothing is left to deliver', () => {
  test('if no frame is intact: the original is kept with its reason', async () => {
    disk.damage(path, (bytes) => bytes.fill(7, HEADER_BYTES, frameAt(4)))
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined', recordsLost: 8 })
    expect(await states()).toEqual(['quarantined'])
    expect(await note()).toMatchObject({ reason: 'no frame is intact', records_lost: 8 })
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined', recordsLost: 8 })
  })

  test.each([0, 10, HEADER_BYTES])('if the file is cut to %i bytes: at least one record is lost', async (bytes) => {
    await replace(original.subarray(0, bytes))
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined', recordsLost: 1 })
    expect(await note()).toMatchObject({ records_lost: 1 })
  })

  test('if the file belongs to another name', async () => {
    await seal('other')
    const other = (await segments.list()).find(({ logName }) => logName === 'other')
    await replace(await bytesOf(other?.path ?? ''))
    await expect(read()).rejects.toThrow('the header belongs to another segment, other/0-')
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined' })
    expect(await note()).toMatchObject({ reason: expect.stringContaining('the header belongs to another segment, other/0-') })
  })

  test('if the header is damaged and the salt-key is gone: the file is kept, for the key may come back', async () => {
    disk.damage(path, (bytes) => flip(bytes, 20))
    await files.remove(`${directory}/salt-key`)
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined' })
    expect(await note()).toMatchObject({ reason: expect.stringContaining('salt-key') })
  })
})

describe('a salvage that is interrupted', () => {
  const faults = ['crash before', 'crash after', 'kill before', 'kill after'] as const
  test.each(faults)('by a %s at each step, is repeated with the same result', async (fault) => {
    let steps = 0
    for (let step = 0; step === steps; step += 1) {
      await newDisk(step)
      disk.damage(path, (bytes) => flip(bytes, frameAt(1) + 60))
      const damaged = await bytesOf(path)
      let call = 0
      disk.fault = () => (call++ === step ? fault : undefined)
      const isInterrupted = await segments.salvage(sealed).then(
        () => false,
        () => true,
      )
      if (isInterrupted) steps += 1
      disk.fault = () => undefined
      mount()
      const isSalvaged = !(await bytesOf(path)).equals(damaged)
      if (isSalvaged) expect(await bytesOf(segmentPath('quarantine')), `step ${step}: the original is kept`).toEqual(damaged)
      // A start of ingest removes unfinished copies.
      await startWal()
      expect((await segments.salvage(sealed)).outcome).toBe(isSalvaged ? 'intact' : 'salvaged')
      expect(await read(), `step ${step}`).toEqual({ names: ['a', 'c', 'd'], damagedRecords: 2 })
      expect(await bytesOf(segmentPath('quarantine'))).toEqual(damaged)
      expect(await note()).toMatchObject({ damage: [{ offset: frameAt(1), bytes: frameAt(2) - frameAt(1) }], records_lost: 2 })
      expect(disk.paths().filter((name) => name.endsWith('.salvage'))).toEqual([])
    }
    expect(steps).toBeGreaterThan(15)
  })

  test.each(faults)('by a %s while it only quarantines, is repeated with the same result', async (fault) => {
    let steps = 0
    for (let step = 0; step === steps; step += 1) {
      await newDisk(step)
      disk.damage(path, (bytes) => bytes.fill(7, HEADER_BYTES, frameAt(4)))
      const damaged = await bytesOf(path)
      let call = 0
      disk.fault = () => (call++ === step ? fault : undefined)
      await segments.salvage(sealed).catch(() => (steps += 1))
      disk.fault = () => undefined
      mount()
      expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'quarantined', recordsLost: 8 })
      expect(await bytesOf(segmentPath('quarantine'))).toEqual(damaged)
      expect(await note()).toMatchObject({ records_lost: 8 })
    }
    expect(steps).toBeGreaterThan(10)
  })

  test.each(faults)('by a %s during the recovery of an open file, is repeated with the same result', async (fault) => {
    let steps = 0
    for (let step = 0; step === steps; step += 1) {
      await newDisk(step)
      await files.rename(path, segmentPath('open'))
      await files.syncDirectory(`${directory}/log`)
      disk.damage(segmentPath('open'), (bytes) => flip(bytes, frameAt(1) + 60))
      const damaged = await bytesOf(segmentPath('open'))
      let call = 0
      disk.fault = () => (call++ === step ? fault : undefined)
      await startWal().catch(() => undefined)
      if (call > step) steps += 1
      disk.fault = () => undefined
      mount()
      await startWal()
      expect(await states(), `step ${step}`).toEqual(['quarantined', 'sealed'])
      expect(await read(), `step ${step}`).toEqual({ names: ['a', 'c', 'd'], damagedRecords: 2 })
      expect(await bytesOf(segmentPath('quarantine'))).toEqual(damaged)
      expect(await note()).toMatchObject({ records_lost: 2, reason: 'frames are damaged' })
    }
    expect(steps).toBeGreaterThan(20)
  })

  test('by a full disk leaves the segment as it was, and is repeated when there is room', async () => {
    disk.damage(path, (bytes) => flip(bytes, frameAt(1) + 60))
    const damaged = await bytesOf(path)
    const used = disk.usedBytes()
    for (const freeBytes of [0, 100, 700, 1_000]) {
      disk.capacityBytes = used + freeBytes
      await expect(segments.salvage(sealed)).rejects.toMatchObject({ code: 'ENOSPC' })
      expect(await bytesOf(path)).toEqual(damaged)
      expect(disk.paths().filter((name) => /salvage|tmp/.test(name))).toEqual([])
    }
    disk.capacityBytes = Number.POSITIVE_INFINITY
    expect(await segments.salvage(sealed)).toMatchObject({ outcome: 'salvaged', recordsLost: 2 })
    expect(await read()).toEqual({ names: ['a', 'c', 'd'], damagedRecords: 2 })
  })
})

async function startWal(): Promise<LocalLogWriter> {
  const wal = new LocalLogWriter({ directory, files, clock, logger: createLogger('test', 'silent') })
  await wal.start()
  return wal
}

async function newDisk(seed: number): Promise<void> {
  disk = new FaultyDisk(seededRandom(seed))
  clock = new ManualClock()
  mount()
  sealed = await seal('log')
  path = segmentPath('wal')
  original = await bytesOf(path)
}

async function seal(logName: string): Promise<SegmentRef> {
  const wal = await startWal()
  wal.configure(logName, { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: -1 })
  for (const name of names) {
    const payload = [Buffer.alloc(200, `${name}\n`)]
    const receivedAtMicros = clock.now() * 1_000
    await wal.append(logName, {
      layout: 'lines',
      receivedAtMicros,
      recordCount: recordsPerFrame,
      envelope: Buffer.from(name),
      payload,
    })
  }
  await wal.stop(new AbortController().signal)
  const found = (await segments.list()).find((segment) => segment.logName === logName)
  if (found === undefined) throw new Error('no segment was sealed')
  return { logName, seq: found.seq, incarnation: found.incarnation }
}

async function read() {
  const reader = await segments.open(sealed)
  try {
    const found: string[] = []
    for await (const group of reader.frames(1_000)) found.push(...group.map(({ envelope }) => Buffer.from(envelope).toString()))
    return { names: found, damagedRecords: reader.footer.damagedRecords }
  } finally {
    await reader.close()
  }
}

async function replace(bytes: Buffer): Promise<void> {
  await files.remove(path)
  const file = await files.open(path, 'create')
  await file.write([bytes], 0)
  await file.sync()
  await file.close()
  await files.syncDirectory(`${directory}/log`)
}

async function states(): Promise<readonly string[]> {
  return (await segments.list()).map(({ state }) => state)
}

function note() {
  return readQuarantineNote(files, segmentPath('quarantine'))
}

async function bytesOf(name: string): Promise<Buffer> {
  return Buffer.from((await files.read(name)) ?? [])
}

function segmentPath(suffix: string): string {
  return `${directory}/log/000000000000-${sealed.incarnation}.${suffix}`
}

/** Returns where the frame with this index starts, and for one more where the frames end. */
function frameAt(index: number): number {
  let at = HEADER_BYTES
  for (let before = 0; before < index; before += 1) at += 12 + original.readUInt32LE(at)
  return at
}

function flip(bytes: Buffer, at: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ 0x10
}

/** Mounts the disk as a new process sees it. */
function mount(): void {
  files = disk.mount()
  segments = new LocalSegmentSource({ directory, files, clock })
}
