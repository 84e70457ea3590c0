/** A node with a log in memory and a copy store in a directory. Its disk outlives its processes. */
import { Buffer } from 'node:buffer'
import { Copies } from '#copies/copies.ts'
import { copyFolder } from '#copies/copy-names.ts'
import { decodeCopy } from '#copies/copy-object.ts'
import { nameOf } from '#copies/held-objects.ts'
import { type KeyPart, type KeySource, type SegmentSeq, seqNameOf } from '#copies/key-copies.ts'
import { systemRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { LogSettings } from '#log/log-writer.ts'
import { MemoryLogWriter } from '#log/memory/log-writer.ts'
import { MemorySegmentSource } from '#log/memory/segment-source.ts'
import { MemoryStorage } from '#log/memory/storage.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import { newId } from '#model/id.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { copyBucket } from './copy-bucket.ts'
import type { FaultyStores } from './faulty-stores.ts'
import { oneRecord } from './frames.ts'
import { ManualClock } from './manual-clock.ts'
import { until } from './until.ts'

const settings: LogSettings = { segmentBytes: 100_000, segmentMaxAgeMs: 60_000, seqAbove: -1, isCopied: true }

/** Stands for the files of idempotency keys. */
class TextKeys implements KeySource {
  readonly texts = new Map<string, string>()
  readonly forgotten = new Set<number>()
  readonly #isFound = new Set<string>()

  async refresh(copied: ReadonlySet<string>): Promise<void> {
    for (const name of this.texts.keys()) if (copied.has(name)) this.#isFound.add(name)
  }

  has(segment: SegmentSeq): boolean {
    return this.#isFound.has(seqNameOf(segment))
  }

  async *read(segments: readonly SegmentSeq[]): AsyncGenerator<KeyPart> {
    for (const segment of segments) yield { hour: segment.seq, bytes: Buffer.from(this.texts.get(seqNameOf(segment)) ?? '') }
  }

  letGo(segments: readonly SegmentSeq[]): void {
    for (const segment of segments) this.texts.delete(seqNameOf(segment))
  }

  knows(hour: number): boolean {
    return !this.forgotten.has(hour)
  }
}

export class CopyingNode {
  readonly id = newId()
  readonly folder = copyFolder('copies', this.id)
  readonly clock = new ManualClock()
  readonly storage = new MemoryStorage()
  readonly store: ObjectStore
  /** Segments whose commits control has recorded. */
  readonly delivered = new Set<string>()
  readonly owned = new Set(['log', 'other'])
  /** Idempotency keys by segment: its seq as hour, and the text of them. */
  readonly keys = new TextKeys()
  isAccepted = false
  isControlAway = false
  /** How many segments control was asked about in each call. */
  readonly asked: number[] = []
  /** A log whose directory cannot be read. */
  unreadable = ''
  copies: Copies
  log: MemoryLogWriter

  constructor(stores: FaultyStores) {
    this.store = stores.open(copyBucket)
    ;({ copies: this.copies, log: this.log } = this.#open())
  }

  get segments(): MemorySegmentSource {
    const segments = new MemorySegmentSource(this.storage, this.clock)
    const readLog = segments.readLog.bind(segments)
    segments.readLog = async (logName) => {
      if (logName === this.unreadable) throw new Error('EIO: i/o error, scandir')
      return await readLog(logName)
    }
    return segments
  }

  /** Starts a process, and waits until the store has answered. */
  async startWithStore(): Promise<this> {
    await this.start()
    await this.until('the store', () => this.copies.refusal === undefined)
    return this
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

  /** Appends a record, and waits for its copy. */
  async storeRecord(text: string, logName = 'log'): Promise<number> {
    const { seq, copied } = await this.append(text, logName)
    let isCopied = false
    void copied.then(() => {
      isCopied = true
    })
    await this.until('the copy', () => isCopied, 10)
    return seq
  }

  /** Seals the log, removes its segments, and has control record that. */
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

  /** Keys of what is in the store, but for what the node says of it. */
  async objects(): Promise<readonly string[]> {
    const names: string[] = []
    for await (const { key } of this.store.list(this.folder)) if (!/\/(writer\/|check-)/.test(key)) names.push(key)
    return names
  }

  /** Returns the letters in the pieces of all objects. */
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
    const { id: nodeId, folder, clock, storage, store, segments } = this
    const copies: Copies = new Copies({
      ...{ nodeId, windowMs: 100, store, folder, segments, clock, random: systemRandom },
      findDelivered: async <Ref extends SegmentRef>(refs: readonly Ref[]) => {
        if (this.isControlAway) throw new Error('control was not reached')
        this.asked.push(refs.length)
        // As CommitLookup of model/node-protocol.ts.
        if (refs.length > 100) throw new Error('control rejected POST commits/lookup: 400')
        return refs.filter((ref) => this.delivered.has(nameOf(ref)))
      },
      keys: this.keys,
      isAccepted: async () => this.isAccepted,
      endpoint: (logName) => ({ isOwned: this.owned.has(logName), isCopied: true }),
      logger: createLogger('test', 'silent'),
    })
    const log = new MemoryLogWriter({ storage, clock, random: systemRandom, copy: (piece) => copies.copy(piece) })
    return { copies, log }
  }
}
