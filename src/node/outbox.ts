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
/** Limit for a batch of several commits, well below the body limit of control. */
const batchBytesMax = 8 * MiB

export type OutboxOptions = {
  readonly directory: string
  /** Sends commits to control and returns the ids that are durable there. */
  readonly send: (commits: readonly SegmentCommit[], signal: AbortSignal) => Promise<readonly string[]>
  /** Called once a commit is durable in the store and before it leaves the outbox. Must be idempotent. */
  readonly onRecorded: (commit: SegmentCommit) => Promise<void>
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Queue of commits to send to control, one fsynced file each.
 *
 * Owns: keeping commits across restarts, sending them in order, retrying forever.
 * Does not own: when a segment may be committed.
 * Law: a commit is removed only after control recorded it and `onRecorded` resolved. Only one batch is in memory, because many
 * commits may accumulate while control is unreachable.
 */
export class Outbox implements Service {
  readonly name = 'outbox'
  readonly #options: OutboxOptions
  /** File size in bytes by commit id, in sending order. */
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
      // Left by a crash during a write that was never acknowledged.
      if (name.endsWith('.tmp')) await files.remove(join(directory, name))
      if (!name.endsWith('.json')) continue
      const bytes = await files.read(join(directory, name))
      const parsed = decode(bytes)
      if (parsed.success) loaded.push({ id: parsed.data.id, seq: parsed.data.seq, bytes: bytes?.byteLength ?? 0 })
      // The segment still exists and its marker is in the bucket, so delivery will commit it again.
      else {
        await files.rename(join(directory, name), join(directory, `${name}.unreadable`))
        logger.error({ name, reason: parsed.error.message }, 'outbox commit unreadable; file renamed')
      }
    }
    for (const { id, bytes } of loaded.toSorted(compareForSending)) this.#pending.set(id, bytes)
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

  /** Adds a commit. It is durable when this resolves. */
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
        await this.#waitForMore(signal)
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
        if (backoff.attempts > 0) logger.info({ waiting: this.#pending.size }, 'commit reporting restored')
        backoff.reset()
        batchSize = batchMax
      } catch (error) {
        if (signal.aborted) return
        // A rejected commit must not block the others. Sending one at a time finds it, and it moves to the end.
        if (batchSize === 1 && isCausedByCommit(error)) {
          const bytes = this.#pending.get(first) ?? 0
          this.#pending.delete(first)
          this.#pending.set(first, bytes)
        }
        batchSize = 1
        const delayMs = backoff.next()
        if (backoff.attempts === 1 || backoff.attempts % 20 === 0) {
          logger.warn({ waiting: this.#pending.size, reason: String(error) }, 'commit reporting failed; retrying')
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
    throw new UnreadableError(`commit ${id} in the outbox is unreadable: ${parsed.error.message}`)
  }

  async #waitForMore(signal: AbortSignal): Promise<void> {
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

function isCausedByCommit(error: unknown): boolean {
  return error instanceof UnreadableError || (error instanceof ControlError && error.status >= 400 && error.status < 500)
}

function decode(bytes: Uint8Array | undefined) {
  return SegmentCommit.safeParse(parseJson(Buffer.from(bytes ?? []).toString('utf8')))
}

type Ordered = Pick<SegmentCommit, 'id' | 'seq'>

function compareForSending(a: Ordered, b: Ordered): number {
  return a.seq - b.seq || (a.id < b.id ? -1 : 1)
}
