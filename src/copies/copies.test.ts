import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { s3Limits } from '#objects/limits.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { CopyingNode } from '../../test/support/copying-node.ts'
import { FailingDisk } from '../../test/support/failing-disk.ts'
import { FaultyStores } from '../../test/support/faulty-stores.ts'
import type { CopyError } from './copy-error.ts'
import { fenceName } from './copy-names.ts'
import { addFence } from './fences.ts'
import { copyLimits } from './limits.ts'
import { findWriterState } from './writer-state.ts'

const never = new AbortController().signal
const noKey = async () => undefined

let directory = ''
let stores: FaultyStores
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-copies-'))
  stores = new FaultyStores(directory)
})
afterEach(() => rm(directory, { recursive: true, maxRetries: 5 }))

test('an object goes once control has recorded each of its segments, and not because a file is gone', async () => {
  const node = new CopyingNode(stores)
  await node.startWithStore()
  await node.storeRecord('first')
  expect(await node.texts()).toBe('first')
  await node.deliver()
  const [name = ''] = node.delivered
  node.delivered.clear()
  node.clock.advance(copyLimits.upkeepIntervalMs)
  await node.storeRecord('second', 'other')
  node.clock.advance(copyLimits.upkeepIntervalMs)
  await node.storeRecord('third')
  expect(await node.texts()).toBe('first,second,third')
  node.delivered.add(name)
  await node.until('the removal', async () => (await node.texts()) === 'second,third', 1_000)
  await node.deliver()
  await node.until('no removal of a later one', async () => (await node.texts()) === 'second,third', 1_000)
  await node.deliver('other')
  // The store has removed an object before the copies count it as removed.
  await node.until('the removal of all', async () => (await node.objects()).length === 0 && node.copies.objects === 0, 1_000)
  expect(node.copies.oldestMs).toBe(0)
})

test('a segment that is not delivered keeps no other object for long', async () => {
  const node = new CopyingNode(stores)
  await node.startWithStore()
  await node.storeRecord('stuck', 'other')
  for (const text of ['a', 'b', 'c']) await node.storeRecord(text)
  await node.deliver()
  expect((await node.objects()).length).toBe(4)
  node.clock.advance(copyLimits.carriedAfterMs)
  await node.until('the object that has it alone', async () => (await node.objects()).length === 1, 1_000)
  expect(await node.texts()).toBe('stuck')
})

test('what an earlier process did not copy is copied at the start, and a repetition of it is refused until then', async () => {
  const node = new CopyingNode(stores)
  await node.startWithStore()
  const seq = await node.storeRecord('copied')
  const held = Promise.withResolvers<void>()
  stores.delay = () => held.promise
  void (await node.append('not copied')).copied.catch(() => undefined)
  node.storage.crash()
  await node.copies.stop(AbortSignal.abort())
  stores.fault = () => 'refused'
  held.resolve()

  await node.start()
  await expect(node.copies.whenCopied('log', seq, noKey)).rejects.toMatchObject({ reason: 'unavailable' })
  await node.until('a reason', () => node.copies.refusal?.includes('was not reached since the start') === true)
  stores.fault = () => undefined
  await node.until('the copy', async () => (await node.texts()).includes('copiednot copied'), 1_000)
  await node.until('that it is known', () =>
    node.copies.whenCopied('log', seq, noKey).then(
      () => true,
      () => false,
    ),
  )
  await node.deliver()
  await node.until('the removal', async () => (await node.objects()).length === 0, 1_000)
  const incarnations = async () => Object.keys((await findWriterState(node.store, node.folder, never))?.state.below ?? {}).length
  await node.until('the end of the earlier incarnations', async () => (await incarnations()) === 2, 1_000)
})

test.each([true, false])(
  'the key of what an earlier process did not copy, and is delivered, is copied with its repetition; delivered by then: %s',
  async (isDelivered) => {
    const node = await new CopyingNode(stores).startWithStore()
    stores.fault = () => 'refused'
    const { seq, copied } = await node.append('not copied')
    const failed = copied.catch(() => undefined)
    if (isDelivered) await node.deliver()
    node.storage.crash()
    await node.copies.stop(AbortSignal.abort())
    await failed
    await node.start()
    if (!isDelivered) await node.deliver()
    stores.fault = () => undefined
    const repetition = async () => {
      let isCopied = false
      void node.copies
        .whenCopied('log', seq, async () => ({ hour: 5, bytes: Buffer.from('key') }))
        .then(() => {
          isCopied = true
        })
      await node.until('the copy of the key', () => isCopied)
    }
    await repetition()
    expect(await node.texts()).toBe('key')
    await repetition()
    expect(await node.texts()).toBe('key')
  },
)

test('the key of what this process has copied is not copied again with a repetition', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  const seqs = [await node.storeRecord('a')]
  await node.deliver()
  seqs.push(await node.storeRecord('b'))
  await node.deliver()
  const keyOf = () => Promise.reject(new Error('it is not needed'))
  for (const seq of seqs) await node.copies.whenCopied('log', seq, keyOf)
})

test('a repetition is refused once the copies have stopped, which the log has not yet', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  const before = await node.storeRecord('a')
  await expect(node.copies.whenCopied('log', before, noKey)).resolves.toBeUndefined()
  await node.copies.stop(AbortSignal.abort())
  const { seq, copied } = await node.append('b', 'other')
  await expect(copied).rejects.toMatchObject({ reason: 'unavailable' })
  await expect(node.copies.whenCopied('other', seq, noKey)).rejects.toMatchObject({ reason: 'unavailable' })
})

test('a fenced node stops without an error that nobody handles, and more than once', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  await addFence(node.store, node.folder, 'another', never)
  const { copied } = await node.append('a')
  let isRefused = false
  copied.catch(() => {
    isRefused = true
  })
  await node.until('the fence', () => isRefused, 10)
  for (let times = 0; times < 2; times += 1) await node.copies.stop(AbortSignal.abort())
  // Vitest fails for a rejection without a handler.
  await new Promise((resolve) => setImmediate(resolve))
})

test('a repetition is refused while the log cannot be listed', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  const seq = await node.storeRecord('copied')
  node.unreadable = 'log'
  await expect(node.copies.whenCopied('log', seq, noKey)).rejects.toMatchObject({ name: 'CopyError', reason: 'unavailable' })
  node.unreadable = ''
  await node.copies.whenCopied('log', seq, noKey)
})

test('an endpoint that is gone keeps no object', async () => {
  const node = new CopyingNode(stores)
  await node.startWithStore()
  await node.storeRecord('dropped')
  await node.deliver()
  node.delivered.clear()
  node.owned.delete('log')
  await node.until('the removal', async () => (await node.objects()).length === 0, 1_000)
})

test('keys of what is delivered stay in the store on their own, as long as the node remembers them, and keep nothing else', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  const seq = await node.storeRecord('record')
  node.keys.texts.set(`log/${seq}`, 'key')
  await node.deliver()
  await node.until('the removal of the records', async () => (await node.texts()) === 'key', 1_000)
  expect([node.copies.objects, node.copies.bytes, node.copies.oldestMs]).toEqual([0, 0, 0])
  const later = await node.storeRecord('another')
  node.keys.texts.set(`log/${later}`, 'second key')
  await node.deliver()
  await node.until('the keys', async () => (await node.texts()) === 'key,second key', 1_000)

  await node.copies.stop(never)
  await node.startWithStore()
  node.keys.forgotten.add(seq)
  await node.until('the end of the first', async () => (await node.texts()) === 'second key', 1_000)
  node.keys.forgotten.add(later)
  await node.until('the end of all', async () => (await node.objects()).length === 0, 1_000)
})

test('a damaged object of keys counts as one of keys, which stays for a day, and not as records that nobody delivers', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  for (const key of ['first', 'second']) {
    const seq = await node.storeRecord('record')
    node.keys.texts.set(`log/${seq}`, key)
    await node.deliver()
    await node.until('the keys', async () => (await node.texts()).endsWith(key), 1_000)
  }
  // With the records there, the next process puts their keys again.
  await node.until('the removal of the records', async () => (await node.objects()).length === 2, 1_000)
  const last = (await node.objects()).toSorted().at(-1) ?? ''
  await node.copies.stop(never)
  await node.store.put(last, Buffer.from('damaged'), { contentType: '', metadata: {}, signal: never })
  await node.startWithStore()
  await node.until('the objects', async () => (await node.objects()).length === 2 && node.copies.bytes === 0, 1_000)
  expect([node.copies.objects, node.copies.oldestMs]).toEqual([0, 0])
})

test('records whose keys cannot be read keep their copies', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  const seq = await node.storeRecord('record')
  node.keys.texts.set(`log/${seq}`, 'key')
  // biome-ignore lint/correctness/useYield: it fails before
  node.keys.read = async function* () {
    throw new Error('EIO')
  }
  await node.deliver()
  for (let seconds = 0; seconds < 200; seconds += 1) await node.until('a second', () => true, 1_000)
  expect(await node.texts()).toBe('record')
  Reflect.deleteProperty(node.keys, 'read')
  await node.until('the keys', async () => (await node.texts()) === 'key', 1_000)
})

test('a node that was taken over learns of it at its start', async () => {
  const node = new CopyingNode(stores)
  await node.store.put(fenceName(node.folder, 1), Buffer.from('{}'), {
    contentType: 'application/json',
    metadata: {},
    signal: never,
  })
  await node.start()
  await node.until('the fence', () => node.copies.refusal?.includes('another machine has taken over this node') === true)
  // An operator gave the id back to it.
  node.isAccepted = true
  await node.startWithStore()
  await node.storeRecord('accepted again')
})

test('many segments that are delivered at once are looked up in pages', async () => {
  const node = new CopyingNode(stores)
  const names = Array.from({ length: copyLimits.lookedUpAtOnce + 1 }, (_, n) => `log${n}`)
  for (const name of names) node.owned.add(name)
  await node.startWithStore()
  const all = await Promise.all(names.map((name) => node.append('x', name)))
  await node.until('the copies', () => node.copies.waitingBytes === 0, 10)
  await Promise.all(all.map(({ copied }) => copied))
  node.isControlAway = true
  for (const name of names) await node.deliver(name)
  node.isControlAway = false
  await node.until('the removal', async () => (await node.objects()).length === 0, 1_000)
  expect(Math.max(...node.asked)).toBe(copyLimits.lookedUpAtOnce)
})

test('no object is larger than what is read of an object, however slow the store and large a piece', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  const held = Promise.withResolvers<void>()
  stores.delay = () => held.promise
  const piece = (seq: number, factor: number) => ({
    ...{ logName: 'log', incarnation: 'k3v9x0q2ab', seq, at: 0 },
    chunks: [randomBytes(copyLimits.objectBytes * factor)],
  })
  const copied = [...Array(8).keys()].map((seq) => node.copies.copy(piece(seq, 1)))
  copied.push(node.copies.copy(piece(8, 5)))
  held.resolve()
  await Promise.all(copied)
  const sizes: number[] = []
  for await (const { key, bytes } of node.store.list(node.folder)) if (!key.includes('/writer/')) sizes.push(bytes)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(s3Limits.getBytesMax)
})

test.each([false, true])(
  'a log that cannot be listed keeps its own copies alone, after a restart too: %s',
  async (isRestarted) => {
    const node = await new CopyingNode(stores).startWithStore()
    await node.storeRecord('a')
    await node.storeRecord('stuck', 'other')
    node.unreadable = 'other'
    if (isRestarted) {
      node.storage.crash()
      await node.copies.stop(AbortSignal.abort())
      await node.startWithStore()
    }
    await node.deliver()
    await node.until('the removal', async () => (await node.texts()) === 'stuck', 1_000)
  },
)

test('objects that a crash left below the boundary, or beyond a gap, are removed', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  for (const text of ['a', 'b', 'c', 'd', 'e', 'f']) await node.storeRecord(text)
  const names = (await node.objects()).toSorted()
  const [zero, , , three] = await Promise.all(names.map((name) => node.store.get(name)))
  await node.deliver()
  await node.copies.stop(AbortSignal.abort())
  // It was about to remove the first, and the fourth never arrived.
  await node.store.remove(names[3] ?? '')
  expect([zero?.length, three?.length]).toEqual([expect.any(Number), expect.any(Number)])
  await node.startWithStore()
  await node.until('the removal of all', async () => (await node.objects()).length === 0, 1_000)
})

test('an endpoint that is stuck and goes on keeps no records of others', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  for (let times = 0; times < 5; times += 1) {
    const two = [await node.append('delivered delivered', 'log'), await node.append('stuck', 'other')]
    await node.until('the copies', () => node.copies.waitingBytes === 0, 10)
    await Promise.all(two.map(({ copied }) => copied))
  }
  await node.deliver()
  await node.until(
    'objects without them',
    async () => !(await node.texts()).includes('delivered'),
    copyLimits.carriedAfterMs / 10,
  )
  expect(await node.texts()).toBe('stuck,stuck,stuck,stuck,stuck')
})

test('an old object that is damaged is copied again from the disk, and keeps no other', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  await node.storeRecord('stuck', 'other')
  for (const text of ['a', 'b', 'c']) await node.storeRecord(text)
  await node.deliver()
  const [first = ''] = (await node.objects()).toSorted()
  const object = Buffer.from((await node.store.get(first)) ?? [])
  object[object.length - 1] = (object.at(-1) ?? 0) ^ 1
  await node.store.put(first, object, { contentType: 'application/octet-stream', metadata: {} })
  node.clock.advance(copyLimits.carriedAfterMs)
  // A segment that is open is copied once it is sealed.
  await node.until(
    'the copy of what is on the disk',
    async () => {
      const [only, ...others] = await node.objects()
      return others.length === 0 && only !== undefined && only !== first && (await node.texts()).includes('stuck')
    },
    10_000,
  )
})

test('what is left of a segment stays until it is copied again, once the store has lost an object of it', async () => {
  const node = new CopyingNode(stores)
  node.owned.add('waste')
  await node.startWithStore()
  await node.storeRecord('zero')
  const [first = ''] = await node.objects()
  await node.storeRecord('one')
  await node.storeRecord('w'.repeat(20_000), 'waste')
  await node.deliver('waste')
  await node.store.remove(first)
  let [refused, states] = [0, 0]
  stores.fault = (key) => {
    if (key.includes('/writer/')) states += 1
    if (/\/(writer\/|check-)/.test(key)) return undefined
    refused += 1
    return 'refused'
  }
  node.clock.advance(copyLimits.carriedAfterMs)
  await node.until('attempts to copy it again', () => refused > 3, 500)
  await node.until('a removal of others', () => states > 0, 1_000)
  expect(await node.texts()).toContain('one')
  stores.fault = () => undefined
  await node.until('the copy', async () => (await node.texts()).includes('zeroone'), 1_000)
  await node.deliver()
  await node.until('the removal of all', async () => (await node.objects()).length === 0, 1_000)
})

test('a store that fails while it is tried is not called unfit, and one that lies is', async () => {
  const node = new CopyingNode(stores)
  let puts = 0
  node.store.putIfAbsent = async () => {
    puts += 1
    throw new ObjectStoreError('unavailable', 'put_if_absent', 'SlowDown', 'try again')
  }
  await node.start()
  // Each check sends two.
  await node.until('the end of a check', () => puts > 2, 1_000)
  expect(node.copies.refusal).toBe('the copy store was not reached since the start of this node')
  node.store.putIfAbsent = async () => false
  await node.until('the end of another one', () => node.copies.refusal?.includes('unfit') === true, 1_000)
})

test.each(['ENOSPC', 'EROFS', 'EIO'])('a store whose disk answers %s takes nothing, says so, and goes on later', async (code) => {
  const disk = new FailingDisk()
  const node = await new CopyingNode(new FaultyStores(directory, disk.files)).startWithStore()
  await node.storeRecord('before')
  disk.code = code
  const { copied } = await node.append('late')
  const reason = copied.catch((error: CopyError) => error.reason)
  await node.until('the refusal', () => node.copies.refusal?.includes(code) === true, 1_000)
  expect(await reason).toBe('unavailable')
  disk.code = undefined
  await node.until('the end of the refusal', () => node.copies.refusal === undefined, 1_000)
  await node.storeRecord('after')
  expect((await node.texts()).split(',').flatMap((text) => text.split(' '))).toEqual(
    expect.arrayContaining(['after', 'before', 'late']),
  )
})

test('a put that arrives once more, after its object was removed, is restored by nobody and removed', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  await node.storeRecord('first')
  const [name = ''] = await node.objects()
  const object = (await node.store.get(name)) ?? Buffer.alloc(0)
  await node.deliver()
  await node.until('the removal', async () => (await node.objects()).length === 0, 1_000)
  expect(await node.store.putIfAbsent(name, object, { contentType: '', metadata: {} })).toBe(true)
  await node.storeRecord('second')
  const state = await findWriterState(node.store, node.folder, never)
  const [, incarnation = '', number] = /([a-z0-9]{10})\/(\d{20})$/.exec(name) ?? []
  expect(state?.state.below[incarnation]).toBeGreaterThan(Number(number))

  node.storage.crash()
  await node.copies.stop(AbortSignal.abort())
  await node.startWithStore()
  await node.until('the removal of the late one', async () => (await node.texts()) === 'second', 1_000)
})

test('senders learn nothing of paths', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  node.store.putIfAbsent = async () => {
    throw new Error("EACCES: permission denied, mkdir '/mnt/secret-place/copies'")
  }
  const { copied } = await node.append('x')
  const reason = copied.catch((error: Error) => error.message)
  await node.until('the refusal', () => node.copies.refusal !== undefined, 1_000)
  expect(await reason).not.toContain('secret-place')
  expect(node.copies.refusal).not.toContain('secret-place')
})
