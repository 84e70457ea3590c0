import { Buffer } from 'node:buffer'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { seqNameOf } from '#copies/key-copies.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { KeysBySegment } from './keys-by-segment.ts'
import { digestsOf } from './request-digests.ts'
import { HOUR_MS, RequestFiles } from './request-files.ts'
import { decodeStoredRequest, STORED_REQUEST_BYTES } from './stored-request.ts'

const hour = 480_000
const logs = [newId(), newId(), newId()] as const
let directory = ''
let reading: Promise<void> = Promise.resolve()
let stored: RequestFiles
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-keys-'))
  reading = Promise.resolve()
  const files: Files = {
    ...systemFiles,
    async open(path, mode) {
      const file = await systemFiles.open(path, mode)
      const read = file.read.bind(file)
      file.read = async (into, position) => {
        await reading
        return await read(into, position)
      }
      return file
    },
  }
  stored = new RequestFiles({
    ...{ directory, title: 'stored-requests', files, logger: createLogger('test', 'silent') },
    ...{ onOpened: () => undefined, onRemoved: () => undefined },
    clock: { monotonic: () => 0, surelyBefore: () => Number.NEGATIVE_INFINITY },
  })
})
afterEach(async () => {
  await stored.close()
  await rm(directory, { recursive: true })
})

const segment = (seq: number, logName: string = logs[0]) => ({ logName, seq })
const names = (...segments: readonly ReturnType<typeof segment>[]) => new Set(segments.map(seqNameOf))

let key = 0
async function append(ofHour: number, ...segments: readonly ReturnType<typeof segment>[]): Promise<void> {
  const requests = segments.map(({ logName, seq }) => {
    key += 1
    const digests = digestsOf(logName, String(key), { envelope: Buffer.alloc(0), payload: [] })
    return { ...digests, seq, records: 1, bytes: 2, storedAtMs: ofHour * HOUR_MS }
  })
  await stored.append(ofHour, requests)
}

/** Returns the segments of the requests that are read for these segments. */
async function read(keys: KeysBySegment, ...segments: readonly ReturnType<typeof segment>[]) {
  const found: string[] = []
  for await (const { bytes } of keys.read(segments))
    for (let at = 0; at < bytes.byteLength; at += STORED_REQUEST_BYTES) {
      const request = decodeStoredRequest(Buffer.from(bytes), at)
      if (request !== undefined) found.push(seqNameOf({ logName: request.endpointId, seq: request.seq }))
    }
  return found.sort()
}

test('requests that are stored while files are looked through are found by the next look', async () => {
  await append(hour, segment(1))
  await append(hour + 1, segment(1))
  const keys = new KeysBySegment(stored, () => undefined)
  const { promise, resolve } = Promise.withResolvers<void>()
  reading = promise
  const refreshed = keys.refresh(names(segment(1)))
  // Segment 2 begins after the look.
  await append(hour + 1, segment(2))
  resolve()
  await refreshed
  await keys.refresh(names(segment(1), segment(2)))
  expect(await read(keys, segment(1), segment(2))).toEqual([segment(1), segment(1), segment(2)].map(seqNameOf))
})

test('keys of a segment that is copied only once its requests were looked through are found', async () => {
  await append(hour, segment(1), segment(2), segment(1))
  const keys = new KeysBySegment(stored, () => undefined)
  await keys.refresh(names(segment(2)))
  expect(keys.has(segment(1))).toBe(false)
  await keys.refresh(names(segment(1), segment(2)))
  expect(await read(keys, segment(1), segment(2))).toEqual([segment(1), segment(1), segment(2)].map(seqNameOf))
})

test('requests of many logs in turn, and of many parts of a file, are told apart', async () => {
  const turns = Array.from({ length: 10_000 }, (_, n) => segment(Math.floor(n / 100), logs[n % 3]))
  await append(hour, ...turns)
  const keys = new KeysBySegment(stored, () => undefined)
  const wanted = turns.filter(({ logName, seq }) => logName !== logs[1] && seq % 2 === 0)
  await keys.refresh(names(...wanted))
  const segments = [...new Map(turns.map((each) => [seqNameOf(each), each])).values()]
  expect(segments.filter((each) => keys.has(each)).map(seqNameOf)).toEqual([...names(...wanted)])
  expect(await read(keys, ...segments)).toEqual(wanted.map(seqNameOf).sort())
})
