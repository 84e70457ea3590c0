import { Buffer } from 'node:buffer'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { crc32c } from '@node-rs/crc32'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { SegmentError } from '../../segment-error.ts'
import { listSegments } from '../format/directory.ts'
import { HEADER_BYTES } from '../format/segment-file.ts'
import { LocalLogWriter } from '../log-writer.ts'
import { openSegment } from './segment-reader.ts'
import { scanSegment } from './segment-scan.ts'

/** Payload sizes from zero to several buffers. */
const sizes = [0, 1, 250, 5_000, 70_000, 300, 0, 12_345]
let directory = ''
let path = ''

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-reader-'))
  const wal = new LocalLogWriter({
    ...system,
    directory: join(directory, 'wal'),
    logger: createLogger('test', 'silent'),
  })
  await wal.start()
  wal.configure('log', { segmentBytes: 10_000_000, segmentMaxAgeMs: 60_000, seqAbove: 6 })
  for (const [id, size] of sizes.entries()) {
    await wal.append('log', {
      layout: 'single',
      receivedAtMicros: 1_000 - id,
      recordCount: 1,
      envelope: Buffer.from([id]),
      payload: [Buffer.alloc(size >> 1, id), Buffer.alloc(size - (size >> 1), id)],
    })
  }
  await wal.stop(new AbortController().signal)
  path = (await listSegments(systemFiles, join(directory, 'wal')))[0]?.path ?? ''
})
afterAll(() => rm(directory, { recursive: true }))

describe('a sealed segment', () => {
  test.each([1, 100, 4_096, 1_000_000])('is read with a buffer of %i bytes', async (bufferBytes) => {
    const reader = await openSegment(systemFiles, path)
    expect(reader.header).toMatchObject({ logName: 'log', seq: 7 })
    expect(reader.footer).toMatchObject({
      frames: sizes.length,
      records: sizes.length,
      payloadBytes: sizes.reduce((sum, size) => sum + size, 0),
      firstReceivedAtMicros: 1_000 - sizes.length + 1,
      lastReceivedAtMicros: 1_000,
    })
    let id = 0
    for await (const frames of reader.frames(bufferBytes)) {
      for (const frame of frames) {
        expect(frame).toMatchObject({ envelope: Buffer.from([id]), receivedAtMicros: 1_000 - id })
        expect(Buffer.from(frame.payload).equals(Buffer.alloc(sizes[id] ?? -1, id))).toBe(true)
        id += 1
      }
    }
    expect(id).toBe(sizes.length)
    await reader.close()
  })

  test('reads the same when compressed with zstd', async () => {
    const compressed = join(directory, 'compressed.wal.zst')
    await writeFile(compressed, zstdCompressSync(await readFile(path)))
    expect(await scanned(compressed)).toEqual(await scanned(path))
    const bytes = await readFile(compressed)
    await writeFile(compressed, bytes.subarray(0, bytes.byteLength - 60))
    await expect(scanned(compressed)).rejects.toThrow(SegmentError)
  })
})

describe('damage is found', () => {
  test.each(Array.from({ length: 24 }, (_, index) => index / 24))('a flipped bit at %f of the file', async (share) => {
    const bytes = await readFile(path)
    const at = Math.floor(share * bytes.byteLength)
    bytes[at] = (bytes[at] ?? 0) ^ 0x10
    await expect(readAll(await kept(bytes))).rejects.toThrow(SegmentError)
  })

  test('bytes missing in the middle, at the end, and too many', async () => {
    const bytes = await readFile(path)
    await expect(readAll(await kept(Buffer.concat([bytes.subarray(0, 500), bytes.subarray(600)])))).rejects.toThrow('damaged')
    await expect(readAll(await kept(bytes.subarray(0, -1)))).rejects.toThrow('no footer')
    await expect(readAll(await kept(Buffer.concat([bytes, Buffer.from('x')])))).rejects.toThrow('no footer')
    await expect(scanned(await kept(Buffer.concat([bytes, Buffer.from('x')])))).rejects.toThrow(
      `is damaged at byte ${bytes.byteLength} (1 bytes)`,
    )
    await expect(readAll(await kept(bytes.subarray(0, 100)))).rejects.toThrow('inside the header')
    await expect(readAll(await kept(Buffer.alloc(0)))).rejects.toThrow('inside the header')
  })

  test('a missing frame', async () => {
    const bytes = await readFile(path)
    const first = bytes.readUInt32LE(HEADER_BYTES) + 12
    const cut = Buffer.concat([bytes.subarray(0, HEADER_BYTES), bytes.subarray(HEADER_BYTES + first)])
    await expect(readAll(await kept(cut))).rejects.toThrow('the footer does not match')
  })

  test.each([
    [2, 'written by an unreleased version of Inlet'],
    [4, 'written by a later version of Inlet'],
  ])('format version %i', async (version, writer) => {
    const bytes = await readFile(path)
    bytes.writeUInt16LE(version, 8)
    bytes.writeUInt32LE(crc32c(bytes.subarray(0, 124)), 124)
    const file = await kept(bytes)
    await expect(readAll(file)).rejects.toThrow(`has format version ${version}, ${writer}; this one reads version 3`)
    await expect(scanned(file)).rejects.toMatchObject({ problem: 'foreign' })
  })

  test('another kind of file', async () => {
    await expect(readAll(await kept(Buffer.from('{"a":1}\n'.repeat(40))))).rejects.toThrow('is not a segment of Inlet')
    await expect(scanned(await kept(zstdCompressSync(Buffer.from('{"a":1}\n'.repeat(40)))))).rejects.toThrow('is not a segment')
  })
})

let copies = 0
async function kept(bytes: Uint8Array): Promise<string> {
  const copy = join(directory, `copy-${copies++}`)
  await writeFile(copy, bytes)
  return copy
}

async function readAll(file: string): Promise<number> {
  const reader = await openSegment(systemFiles, file)
  try {
    let frames = 0
    for await (const group of reader.frames(10_000)) frames += group.length
    return frames
  } finally {
    await reader.close()
  }
}

async function scanned(file: string) {
  const scan = await scanSegment(systemFiles, file)
  try {
    let envelopes = ''
    for await (const group of scan.frames(10_000)) for (const { envelope } of group) envelopes += `${[...envelope]} `
    return { header: scan.header, footer: scan.footer(), envelopes }
  } finally {
    await scan.close()
  }
}
