import { Buffer } from 'node:buffer'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { SegmentPiece } from '#log/segment-piece.ts'
import { newId } from '#model/id.ts'
import { copyBucket } from '../../test/support/copy-bucket.ts'
import { FaultyStores } from '../../test/support/faulty-stores.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import { Copier } from './copier.ts'
import { copyFolder, copyName, fenceName } from './copy-names.ts'
import { decodeCopy, encodeCopy } from './copy-object.ts'
import { copyLimits } from './limits.ts'

let directory = ''
let stores: FaultyStores
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-copies-'))
  stores = new FaultyStores(directory)
})
afterEach(() => rm(directory, { recursive: true }))

const nodeId = newId()
const incarnation = 'abcdefghij'
const folder = copyFolder('copies', nodeId)
const put = { contentType: 'application/json', metadata: {} }

function aCopier(more: Partial<ConstructorParameters<typeof Copier>[0]> = {}) {
  const clock = new ManualClock()
  const store = stores.open(copyBucket)
  const copiedNumbers: number[] = []
  const copier = new Copier({
    ...{ nodeId, incarnation, registered: Promise.resolve(3), windowMs: 100, store, folder, clock, random: systemRandom },
    logger: createLogger('test', 'silent'),
    onCopied: (number) => copiedNumbers.push(number),
    ...more,
  })
  return { copier, clock, store, copiedNumbers }
}

const aPiece = (at: number, text = 'x'): SegmentPiece => ({
  logName: 'log',
  incarnation: 'k3v9x0q2ab',
  seq: 7,
  at,
  chunks: [Buffer.from(text)],
})
const textsOf = async (object: Uint8Array | undefined) =>
  (await decodeCopy(object ?? Buffer.alloc(0))).pieces.map(({ chunks }) => Buffer.concat(chunks).toString())
const settled = async (promise: Promise<void>) => {
  let isSettled = false
  const settle = () => {
    isSettled = true
  }
  promise.then(settle, settle)
  await new Promise((resolve) => setImmediate(resolve))
  return isSettled
}

describe('a copier', () => {
  test('puts what arrives in a window into one object, after 10 ms if it is quiet', async () => {
    const { copier, clock, store } = aCopier()
    const copied = Promise.all([copier.copy(aPiece(0, 'a')), copier.copy({ ...aPiece(0, 'b'), logName: 'other' })])
    clock.advance(9)
    expect(stores.attempts).toBe(0)
    clock.advance(1)
    await copied
    expect(await textsOf(await store.get(copyName(folder, incarnation, 0)))).toEqual(['a', 'b'])
    expect(stores.attempts).toBe(1)
  })

  test('puts an object of 4 MiB at once, and some beside each other', async () => {
    const { copier } = aCopier()
    const large = 'x'.repeat(copyLimits.objectBytes)
    const held = Promise.withResolvers<void>()
    stores.delay = () => held.promise
    const copies = Array.from({ length: copyLimits.putsParallel + 3 }, () => copier.copy(aPiece(0, large)))
    await until('the puts', () => stores.attempts === copyLimits.putsParallel)
    expect(copier.objectsInFlight).toBe(copyLimits.putsParallel)
    held.resolve()
    await Promise.all(copies)
    // None is larger, however long the others wait.
    expect(stores.attempts).toBe(copyLimits.putsParallel + 3)
  })

  test('answers in the order of the numbers', async () => {
    const { copier, clock, copiedNumbers } = aCopier()
    const first = Promise.withResolvers<void>()
    stores.delay = (key) => (key.endsWith('0') ? first.promise : undefined)
    const one = copier.copy(aPiece(0))
    clock.advance(10)
    const two = copier.copy(aPiece(1))
    clock.advance(100)
    await until('the second object', () => stores.done.length === 1)
    expect(await settled(two)).toBe(false)
    first.resolve()
    await Promise.all([one, two])
    expect(stores.done.map((key) => key.slice(-1))).toEqual(['1', '0'])
    expect(copiedNumbers).toEqual([0, 1])
  })

  test('takes an object for its own of which the answer was lost', async () => {
    const { copier, clock } = aCopier()
    stores.fault = () => (stores.attempts === 1 ? 'answer lost' : undefined)
    const copied = copier.copy(aPiece(0))
    clock.advance(10)
    await until('the second put', () => {
      clock.advance(100)
      return stores.attempts === 2
    })
    await copied
    expect(copier.isFenced).toBe(false)
  })

  test('tells callers that the store is late, and copies all the same', async () => {
    const { copier, clock, store } = aCopier()
    stores.fault = () => 'refused'
    const copied = copier.copy(aPiece(0, 'late'))
    clock.advance(10)
    // The next attempt comes once the copier knows that the one before failed.
    await until('a second put', () => {
      if (stores.attempts === 1) clock.advance(copyLimits.retryMsMin)
      return stores.attempts > 1
    })
    clock.advance(copyLimits.answerMsMax)
    await expect(copied).rejects.toMatchObject({ reason: 'unavailable' })
    expect(copier.problem).toBe('the copy store takes no records: it fails')
    stores.fault = () => undefined
    await until('the late one', () => {
      if (stores.done.length === 0) clock.advance(1_000)
      return stores.done.length === 1
    })
    // On a busy machine large steps would make this one late as well.
    const next = copier.copy(aPiece(4, 'next'))
    await until('the next one', () => {
      if (stores.done.length === 1) clock.advance(10)
      return stores.done.length === 2
    })
    await next
    expect(copier.problem).toBeUndefined()
    expect(await textsOf(await store.get(copyName(folder, incarnation, 0)))).toEqual(['late'])
  })
})

describe('a copier acknowledges nothing more once', () => {
  test('the store has one more fence', async () => {
    const { copier, clock, store } = aCopier()
    await store.put(fenceName(folder, 4), Buffer.from('{}'), put)
    const [one, two] = [copier.copy(aPiece(0)), copier.copy(aPiece(1))]
    clock.advance(10)
    await expect(one).rejects.toMatchObject({ reason: 'fenced' })
    await expect(two).rejects.toMatchObject({ reason: 'fenced' })
    await expect(copier.copy(aPiece(2))).rejects.toMatchObject({ reason: 'fenced' })
    expect(copier.isFenced).toBe(true)
  })

  test('another writer has put its number', async () => {
    const { copier, clock, store } = aCopier()
    const closing = { kind: 'closing', nodeId, incarnation, number: 0, writer: 'ab'.repeat(16), createdAtMicros: 1 } as const
    await store.put(copyName(folder, incarnation, 0), await encodeCopy(closing, []), put)
    const copied = copier.copy(aPiece(0))
    clock.advance(10)
    await expect(copied).rejects.toMatchObject({ reason: 'fenced' })
    expect([copier.isFenced, copier.problem]).toEqual([true, 'another machine has taken over this node, and has its copies'])
  })

  test('not by a fence from before', async () => {
    const { copier, clock, store } = aCopier()
    await store.put(fenceName(folder, 3), Buffer.from('{}'), put)
    const copied = copier.copy(aPiece(0))
    clock.advance(10)
    await copied
  })
})

test('a stop waits for what the store takes, and for nothing that it does not', async () => {
  const { copier, clock } = aCopier()
  const copied = copier.copy(aPiece(0))
  await copier.stop(new AbortController().signal)
  await copied
  expect(stores.done).toHaveLength(1)

  const other = aCopier({ incarnation: 'zzzzzzzzzz' })
  stores.fault = () => 'refused'
  const lost = other.copier.copy(aPiece(0))
  lost.catch(() => undefined)
  const again = other.copier.copyAgain(aPiece(1))
  await other.copier.stop(AbortSignal.abort())
  await expect(lost).rejects.toMatchObject({ reason: 'unavailable' })
  await expect(again).rejects.toMatchObject({ message: 'the node stops' })
  await expect(other.copier.copy(aPiece(2))).rejects.toMatchObject({ message: 'the node stops' })
  clock.advance(1)
})
