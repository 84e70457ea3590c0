import { join } from 'node:path'
import { MiB } from '#lib/bytes.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { SegmentCommit } from '#model/commit.ts'
import { ControlError } from './control-client.ts'

const batchMax = 50
/** Of a batch of several: well below what control takes in one request. */
const batchBytesMax = 8 * MiB

export type OutboxOptions = {
  readonly directory: string
  /** Reports commits to control and answers with the ids that are durable there. */
  readonly send: (commits: readonly SegmentCommit[], signal: AbortSignal) => Promise<readonly string[]>
  /** Called once a commit is durable in the store and before it leaves the outbox. Must be idempotent. */
  readonly onRecorded: (commit: SegmentCommit) => Promise<void>
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Commits on their way to control, one fsynced file each.
 *
 * Owns: keeping them through restarts, sending them in the order in which they came, trying for ever.
 * Does not own: which segment may be committed when.
 * Law: a commit leaves the outbox only after control has it and `onRecorded` is through. In memory there is but a batch of them: while control
 * is away they may become many.
 */
export class Outbox implements Service {
  readonly name = 'outbox'
  readonly #options: OutboxOptions
  /** Ids and the bytes of their files, in the order in which they are sent. */
  readonly #pending = new Map<string, number>()
  readonly #stopping = new AbortController()
  #wake: () => void = () => undefined
  #sending: Promise<void> = Promise.resolve()

  constructor(options: OutboxOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { directory, files, logger } = this.#options
    await files.makeDirectory(directory)
    const loaded: (Pick<SegmentCommit, 'id' | 'seq'> & { readonly bytes: number })[] = []
    for (const { name } of await files.list(directory)) {
      // What a crash left of a write that nobody relied on.
      if (name.endsWith('.tmp')) await files.remove(join(directory, name))
      if (!name.endsWith('.json')) continue
      const bytes = await files.read(join(directory, name))
      const parsed = decode(bytes)
      if (parsed.success) loaded.push({ id: parsed.data.id, seq: parsed.data.seq, bytes: bytes?.byteLength ?? 0 })
      // Its segment is still there and its marker in the bucket, so it will be committed again from them.
      else {
        await files.rename(join(directory, name), join(directory, `${name}.unreadable`))
        logger.error({ name, reason: parsed.error.message }, 'a commit in the outbox is unreadable; it was set aside')
      }
    }
    for (const { id, bytes } of loaded.toSorted(inOrder)) this.#pending.set(id, bytes)
    this.#sending = this.#sendAll(this.#stopping.signal)
  }

  async stop(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    while (this.#pending.size > 0 && !signal.aborted) await sleep(clock, 20, signal)
    this.#stopping.abort()
    this.#wake()
    await this.#sending
  }

  has(id: string): boolean {
    return this.#pending.has(id)
  }

  get size(): number {
    return this.#pending.size
  }

  /** Durable when it resolves. */
  async add(commit: SegmentCommit): Promise<void> {
    const bytes = Buffer.from(JSON.stringify(commit))
    await writeDurably(this.#options.files, this.#path(commit.id), bytes)
    this.#pending.set(commit.id, bytes.byteLength)
    this.#wake()
  }

  async #sendAll(signal: AbortSignal): Promise<void> {
    const { send, onRecorded, files, clock, logger } = this.#options
    const backoff = new Backoff({ delayMsMin: 100, delayMsMax: 10_000 })
    let batchSize = batchMax
    while (!signal.aborted) {
      const ids = this.#nextIds(batchSize)
      const [first] = ids
      if (first === undefined) {
        await this.#more(signal)
        continue
      }
      try {
        const batch = await Promise.all(ids.map((id) => this.#read(id)))
        const recorded = new Set(await send(batch, signal))
        if (recorded.size === 0) throw new Error('control recorded none of the commits')
        for (const commit of batch) {
          if (!recorded.has(commit.id)) continue
          await onRecorded(commit)
          await files.remove(this.#path(commit.id))
          this.#pending.delete(commit.id)
        }
        if (backoff.attempts > 0) logger.info({ waiting: this.#pending.size }, 'commits reach control again')
        backoff.reset()
        batchSize = batchMax
      } catch (error) {
        if (signal.aborted) return
        // One that is refused must not hold back the others: it is found by sending one at a time, and goes to the end.
        if (batchSize === 1 && isOfOneCommit(error)) {
          const bytes = this.#pending.get(first) ?? 0
          this.#pending.delete(first)
          this.#pending.set(first, bytes)
        }
        batchSize = 1
        const delayMs = backoff.next()
        if (backoff.attempts === 1 || backoff.attempts % 20 === 0) {
          logger.warn({ waiting: this.#pending.size, reason: String(error) }, 'commits wait in the outbox')
        }
        await sleep(clock, delayMs, signal)
      }
    }
  }

  #nextIds(batchSize: number): readonly string[] {
    const ids: string[] = []
    let batchBytes = 0
    for (const [id, bytes] of this.#pending) {
      batchBytes += bytes
      if (ids.length === batchSize || (ids.length > 0 && batchBytes > batchBytesMax)) break
      ids.push(id)
    }
    return ids
  }

  async #read(id: string): Promise<SegmentCommit> {
    const parsed = decode(await this.#options.files.read(this.#path(id)))
    if (parsed.success) return parsed.data
    throw new UnreadableError(`the commit ${id} in the outbox can't be read: ${parsed.error.message}`)
  }

  async #more(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    if (!signal.aborted && this.#pending.size === 0) await promise
  }

  #path(id: string): string {
    return join(this.#options.directory, `${id}.json`)
  }
}

class UnreadableError extends Error {
  override readonly name = 'UnreadableError'
}

function isOfOneCommit(error: unknown): boolean {
  return error instanceof UnreadableError || (error instanceof ControlError && error.status >= 400 && error.status < 500)
}

function decode(bytes: Uint8Array | undefined) {
  return SegmentCommit.safeParse(parseJson(Buffer.from(bytes ?? []).toString('utf8')))
}

type Ordered = Pick<SegmentCommit, 'id' | 'seq'>

function inOrder(a: Ordered, b: Ordered): number {
  return a.seq - b.seq || (a.id < b.id ? -1 : 1)
}
