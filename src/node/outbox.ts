import { join } from 'node:path'
import { type Clock, sleep } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { SegmentCommit } from '#model/commit.ts'
import { ControlError } from './control-client.ts'

const batchMax = 50

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
 * Law: a commit leaves the outbox only after control has it and `onRecorded` is through.
 */
export class Outbox implements Service {
  readonly name = 'outbox'
  readonly #options: OutboxOptions
  readonly #pending = new Map<string, SegmentCommit>()
  readonly #stopping = new AbortController()
  #wake: () => void = () => undefined
  #sending: Promise<void> = Promise.resolve()

  constructor(options: OutboxOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { directory, files, logger } = this.#options
    await files.makeDirectory(directory)
    const loaded: SegmentCommit[] = []
    for (const { name } of await files.list(directory)) {
      // What a crash left of a write that nobody relied on.
      if (name.endsWith('.tmp')) await files.remove(join(directory, name))
      if (!name.endsWith('.json')) continue
      const bytes = await files.read(join(directory, name))
      const parsed = SegmentCommit.safeParse(parseJson(Buffer.from(bytes ?? []).toString('utf8')))
      if (parsed.success) loaded.push(parsed.data)
      // Its segment is still there and its marker in the bucket, so it will be committed again from them.
      else {
        await files.rename(join(directory, name), join(directory, `${name}.unreadable`))
        logger.error({ name, reason: parsed.error.message }, 'a commit in the outbox is unreadable; it was set aside')
      }
    }
    for (const commit of loaded.toSorted(inOrder)) this.#pending.set(commit.id, commit)
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
    await writeDurably(this.#options.files, this.#path(commit.id), Buffer.from(JSON.stringify(commit)))
    this.#pending.set(commit.id, commit)
    this.#wake()
  }

  async #sendAll(signal: AbortSignal): Promise<void> {
    const { send, onRecorded, files, clock, logger } = this.#options
    const backoff = new Backoff({ delayMsMin: 100, delayMsMax: 10_000 })
    let batchSize = batchMax
    while (!signal.aborted) {
      const batch = this.#pending.values().take(batchSize).toArray()
      if (batch.length === 0) {
        await this.#more(signal)
        continue
      }
      try {
        const recorded = await send(batch, signal)
        if (recorded.length === 0) throw new Error('control recorded none of the commits')
        for (const id of recorded) {
          const commit = this.#pending.get(id)
          if (commit === undefined) continue
          await onRecorded(commit)
          await files.remove(this.#path(id))
          this.#pending.delete(id)
        }
        if (backoff.attempts > 0) logger.info({ waiting: this.#pending.size }, 'commits reach control again')
        backoff.reset()
        batchSize = batchMax
      } catch (error) {
        if (signal.aborted) return
        // One that is refused must not hold back the others: it is found by sending one at a time, and goes to the end.
        const [first] = batch
        if (
          batchSize === 1 &&
          first !== undefined &&
          error instanceof ControlError &&
          error.status >= 400 &&
          error.status < 500
        ) {
          this.#pending.delete(first.id)
          this.#pending.set(first.id, first)
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

  async #more(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    if (!signal.aborted && this.#pending.size === 0) await promise
  }

  #path(id: string): string {
    return join(this.#options.directory, `${id}.json`)
  }
}

function inOrder(a: SegmentCommit, b: SegmentCommit): number {
  return a.seq - b.seq || (a.id < b.id ? -1 : 1)
}
