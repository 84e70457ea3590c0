import { Buffer } from 'node:buffer'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { LogSettings } from '#log/log-writer.ts'
import { MemoryLogWriter } from '#log/memory/log-writer.ts'
import { MemorySegmentSource } from '#log/memory/segment-source.ts'
import { MemoryStorage } from '#log/memory/storage.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import { newId } from '#model/id.ts'
import { copyBucket } from '../../test/support/copy-bucket.ts'
import { FaultyStores } from '../../test/support/faulty-stores.ts'
import { oneRecord } from '../../test/support/frames.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import { Copies } from './copies.ts'
import { copyFolder, fenceName } from './copy-names.ts'
import { decodeCopy } from './copy-object.ts'
import { nameOf } from './held-objects.ts'
import { copyLimits } from './limits.ts'
import { readWriterState } from './writer-state.ts'

const never = new AbortController().signal
const nodeId = newId()
const folder = copyFolder('copies', nodeId)
const settings: LogSettings = { segmentBytes: 100_000, segmentMaxAgeMs: 60_000, seqAbove: -1, isCopied: true }

let directory = ''
let stores: FaultyStores
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-copies-'))
  stores = new FaultyStores(directory)
})
afterEach(() => rm(directory, { recursive: true }))

/** A node whose disk outlives its processes. */
class Node {
  readonly clock = new ManualClock()
  readonly storage = new MemoryStorage()
  readonly store = stores.open(copyBucket)
  /** Segments whose commits control has recorded. */
  readonly delivered = new Set<string>()
  readonly owned = new Set(['log', 'other'])
  isAccepted = false
  copies: Copies
  log: MemoryLogWriter

  constructor() {
    ;({ copies: this.copies, log: this.log } = this.#open())
  }

  get segments(): MemorySegmentSource {
    return new MemorySegmentSource(this.storage, this.clock)
  }

  async start(): Promise<void> {
    ;({ copies: this.copies, log: this.log } = this.#open())
    await this.log.start()
    await this.copies.start()
    for (const name of this.owned) this.log.configure(name, settings)
  }

  async append(text: string, logName = 'log'): Promise<{ readonly seq: number; readonly copied: Promise<void> }> {
    const frame = oneRecord({ payload: Buffer.from(text), envelope: '', at: this.clock.now() * 1_000 })
    const { seq, copied } = await this.log.append(logName, frame)
    if (copied === undefined) throw new Error('it is not copied')
    return { seq, copied }
  }

  /** Lets time pass until the condition holds. */
  async until(what: string, condition: () => boolean | Promise<boolean>, stepMs = 100): Promise<void> {
    await until(what, async () => {
      this.clock.advance(stepMs)
      await new Promise((resolve) => setImmediate(resolve))
      return await condition()
    })
  }

  async store1(text: string, logName = 'log'): Promise<number> {
    const { seq, copied } = await this.append(text, logName)
    let isCopied = false
    void copied.then(() => {
      isCopied = true
    })
    await this.until('the copy', () => isCopied, 10)
    return seq
  }

  async deliver(logName = 'log'): Promise<void> {
    this.clock.advance(settings.segmentMaxAgeMs)
    await this.until('the seal', async () =>
      (await this.segments.readLog(logName)).segments.every(({ state }) => state === 'sealed'),
    )
    for (const segment of (await this.segments.readLog(logName)).segments) {
      this.delivered.add(nameOf(segment))
      await this.segments.remove(segment)
    }
  }

  /** Names of objects, without the folder of the node. */
  async objects(): Promise<readonly string[]> {
    const names: string[] = []
    for await (const { key } of this.store.list(folder)) if (!key.endsWith('/writer')) names.push(key)
    return names
  }

  async texts(): Promise<string> {
    const found: string[] = []
    for (const name of await this.objects()) {
      const object = await this.store.get(name)
      // It may have been removed since the listing.
      if (object === undefined) continue
      const { pieces } = await decodeCopy(object)
      found.push(
        ...pieces.map(({ chunks }) =>
          Buffer.concat(chunks)
            .toString('latin1')
            .replaceAll(/[^a-z ]/g, ''),
        ),
      )
    }
    return found.sort().join()
  }

  #open(): { readonly copies: Copies; readonly log: MemoryLogWriter } {
    const { clock, storage, store, segments } = this
    const copies: Copies = new Copies({
      ...{ nodeId, windowMs: 100, store, folder, segments, clock, random: systemRandom },
      findDelivered: async <Ref extends SegmentRef>(refs: readonly Ref[]) =>
        refs.filter((ref) => this.delivered.has(nameOf(ref))),
      isAccepted: async () => this.isAccepted,
      endpoint: (logName) => ({ isOwned: this.owned.has(logName), isCopied: true }),
      logger: createLogger('test', 'silent'),
    })
    const log = new MemoryLogWriter({ storage, clock, random: systemRandom, copy: (piece) => copies.copy(piece) })
    return { copies, log }
  }
}

test('an object goes once control has recorded each of its segments, and not because a file is gone', async () => {
  const node = new Node()
  await node.start()
  await node.until('the store', () => node.copies.refusal === undefined)
  await node.store1('first')
  expect(await node.texts()).toBe('first')
  await node.deliver()
  const [name = ''] = node.delivered
  node.delivered.clear()
  node.clock.advance(copyLimits.upkeepIntervalMs)
  await node.store1('second', 'other')
  node.clock.advance(copyLimits.upkeepIntervalMs)
  await node.store1('third')
  expect(await node.texts()).toBe('first,second,third')
  node.delivered.add(name)
  await node.until('the removal', async () => (await node.texts()) === 'second,third', 1_000)
  await node.deliver()
  await node.until('no removal of a later one', async () => (await node.texts()) === 'second,third', 1_000)
  await node.deliver('other')
  await node.until('the removal of all', async () => (await node.objects()).length === 0, 1_000)
  expect([node.copies.objects, node.copies.oldestMs]).toEqual([0, 0])
})

test('a segment that is not delivered keeps no other object for long', async () => {
  const node = new Node()
  await node.start()
  await node.until('the store', () => node.copies.refusal === undefined)
  await node.store1('stuck', 'other')
  for (const text of ['a', 'b', 'c']) await node.store1(text)
  await node.deliver()
  expect((await node.objects()).length).toBe(4)
  node.clock.advance(copyLimits.carriedAfterMs)
  await node.until('the object that has it alone', async () => (await node.objects()).length === 1, 1_000)
  expect(await node.texts()).toBe('stuck')
})

test('what an earlier process did not copy is copied at the start, and a repetition of it is refused until then', async () => {
  const node = new Node()
  await node.start()
  await node.until('the store', () => node.copies.refusal === undefined)
  const seq = await node.store1('copied')
  const held = Promise.withResolvers<void>()
  stores.delay = () => held.promise
  void (await node.append('not copied')).copied.catch(() => undefined)
  node.storage.crash()
  await node.copies.stop(AbortSignal.abort())
  stores.fault = () => 'refused'
  held.resolve()

  await node.start()
  await expect(node.copies.whenCopied('log', seq)).rejects.toMatchObject({ reason: 'unavailable' })
  await node.until('a reason', () => node.copies.refusal?.includes('SlowDown') === true)
  stores.fault = () => undefined
  await node.until('the copy', async () => (await node.texts()).includes('copiednot copied'), 1_000)
  await node.until('that it is known', () =>
    node.copies.whenCopied('log', seq).then(
      () => true,
      () => false,
    ),
  )
  await node.deliver()
  await node.until('the removal', async () => (await node.objects()).length === 0, 1_000)
  const incarnations = async () => Object.keys((await readWriterState(node.store, folder)).below).length
  await node.until('the end of the earlier incarnation', async () => (await incarnations()) === 1, 1_000)
})

test('an endpoint that is gone keeps no object', async () => {
  const node = new Node()
  await node.start()
  await node.until('the store', () => node.copies.refusal === undefined)
  await node.store1('dropped')
  await node.deliver()
  node.delivered.clear()
  node.owned.delete('log')
  await node.until('the removal', async () => (await node.objects()).length === 0, 1_000)
})

test('a node that was taken over learns of it at its start', async () => {
  const node = new Node()
  await node.store.put(fenceName(folder, 1), Buffer.from('{}'), { contentType: 'application/json', metadata: {}, signal: never })
  await node.start()
  await node.until('the fence', () => node.copies.refusal?.includes('another machine has taken over this node') === true)
  // An operator gave the id back to it.
  node.isAccepted = true
  await node.start()
  await node.until('the store', () => node.copies.refusal === undefined)
  await node.store1('accepted again')
})
