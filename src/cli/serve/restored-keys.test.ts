import { Buffer } from 'node:buffer'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Copier } from '#copies/copier.ts'
import { KeyCopies, keysLogName, seqNameOf } from '#copies/key-copies.ts'
import { KeysBySegment } from '#ingest/idempotency/keys-by-segment.ts'
import { digestsOf } from '#ingest/idempotency/request-digests.ts'
import { HOUR_MS, RequestFiles } from '#ingest/idempotency/request-files.ts'
import { encodeStoredRequest, STORED_REQUEST_BYTES, type StoredRequest } from '#ingest/idempotency/stored-request.ts'
import { systemFiles } from '#lib/files.ts'
import { systemRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { SegmentPiece } from '#log/segment-piece.ts'
import { newId } from '#model/id.ts'
import { copyBucket } from '../../../test/support/copy-bucket.ts'
import { FaultyStores } from '../../../test/support/faulty-stores.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { RestoredPieces } from './restored-pieces.ts'

const logger = createLogger('test', 'silent')
const incarnation = 'abcdefghij'
const logName = newId()
const hour = 480_000

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-key-copies-'))
})
afterEach(() => rm(directory, { recursive: true }))

function open(name: string): RequestFiles {
  return new RequestFiles({
    ...{ directory: join(directory, name), title: name, files: systemFiles, logger },
    ...{ onOpened: () => undefined, onRemoved: () => undefined },
    clock: { monotonic: () => 0, surelyBefore: () => Number.NEGATIVE_INFINITY },
  })
}

function aRequest(key: string, ofHour = hour): StoredRequest {
  const digests = digestsOf(logName, key, { envelope: Buffer.alloc(0), payload: [] })
  return { ...digests, seq: 1, records: 1, bytes: 2, storedAtMs: ofHour * HOUR_MS }
}

test('keys of more than an object holds are restored, each of them', async () => {
  const count = 60_000
  const requests = Array.from({ length: count }, (_, n) => aRequest(`key-${n}`))
  const stored = open('stored-requests')
  await stored.append(hour, requests)

  const clock = new ManualClock()
  const pieces: SegmentPiece[] = []
  const copier = new Copier({
    ...{
      nodeId: newId(),
      incarnation,
      registered: Promise.resolve(0),
      windowMs: 100,
      folder: 'copies/',
      clock,
      random: systemRandom,
    },
    store: new FaultyStores(directory).open(copyBucket),
    logger,
    onCopied: (_, copied) => pieces.push(...copied),
  })
  const segment = { logName, seq: 1, incarnation: 'k3v9x0q2ab' }
  const source = new KeysBySegment(stored, () => undefined)
  const copied = () => new Set([seqNameOf(segment)])
  const puts = { copy: (piece: SegmentPiece) => copier.copyAgain(piece), copyNow: (piece: SegmentPiece) => copier.copy(piece) }
  const keys = new KeyCopies({ source, incarnation, copied, clock, ...puts })
  let isKept = false
  void keys.keep([segment]).then(() => {
    isKept = true
  })
  await until('the keys', () => {
    clock.advance(100)
    return isKept
  })
  await stored.close()

  const restored = join(directory, 'restored')
  const writer = await RestoredPieces.open({ files: systemFiles, wal: join(directory, 'wal'), storedRequests: restored })
  for (const piece of pieces) await writer.write(piece)
  await writer.close()
  const found = open('restored')
  await found.prepare()
  let known = 0
  for (const { id } of requests) if ((await found.find(id)) !== undefined) known += 1
  await found.close()
  expect(known).toBe(count)
})

/** Returns the names of the files that are restored from these hours, with how many keys each has. */
async function restore(pieces: readonly { readonly seq: number; readonly requests: readonly StoredRequest[] }[]) {
  const storedRequests = join(directory, 'restored')
  const writer = await RestoredPieces.open({ files: systemFiles, wal: join(directory, 'wal'), storedRequests })
  for (const { seq, requests } of pieces) {
    const bytes = Buffer.alloc(requests.length * STORED_REQUEST_BYTES)
    for (const [index, request] of requests.entries()) encodeStoredRequest(request, bytes, index * STORED_REQUEST_BYTES)
    await writer.write({ logName: keysLogName, seq, incarnation, at: 0, chunks: [bytes] })
  }
  await writer.close()
  const entries = await systemFiles.list(storedRequests)
  const sizes = entries.map(
    async ({ name }) => [name, ((await systemFiles.bytes(join(storedRequests, name))) ?? 0) / 80] as const,
  )
  return new Map(await Promise.all(sizes))
}

test('a store that was tampered with makes no more files than a node has', async () => {
  const hours = Array.from({ length: 500 }, (_, n) => ({ seq: hour + n, requests: [aRequest('a', hour + n)] }))
  const strange = [1e12, 2 ** 53 - 1, hour + 1].map((seq) => ({ seq, requests: [aRequest('a', hour)] }))
  const unreadable = { seq: hour, requests: [{ ...aRequest('b'), storedAtMs: Number.NaN }] }
  const badSeq = {
    seq: hour,
    requests: [
      { ...aRequest('c'), seq: Number.NaN },
      { ...aRequest('d'), seq: -1 },
    ],
  }
  expect([...(await restore([...strange, unreadable, badSeq, ...hours])).entries()].length).toBeLessThanOrEqual(100)
  expect(await restore([...strange, unreadable, badSeq])).toEqual(new Map())
})

test('keys of several hours, in turn, are appended to their files', async () => {
  const turns = Array.from({ length: 10 }, (_, n) => ({ seq: hour + (n % 2), requests: [aRequest(`${n}`, hour + (n % 2))] }))
  expect(await restore(turns)).toEqual(
    new Map([
      [`${hour}.requests`, 5],
      [`${hour + 1}.requests`, 5],
    ]),
  )
})
