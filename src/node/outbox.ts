import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { SegmentCommit } from '#model/commit.ts'
import { ControlError } from './control-client.ts'
import { type Batch, loadBatch, type Share } from './outbox-batch.ts'
import { type OutboxEntry, OutboxFiles } from './outbox-files.ts'
import { OutboxQueue } from './outbox-queue.ts'

const batchMax = 50
/** Upper bound for a wait that an added commit ends. */
const restMsMax = 60_000
/** From this many failures in a row on, control counts as away. One failure may have been caused by a commit. */
const attemptsOfOutage = 2
/** Client errors that say nothing about the commits: credentials, the address of control, timeouts, rate limits. */
const unrelatedStatuses: readonly number[] = [401, 403, 404, 408, 429]

export type OutboxOptions = {
  readonly directory: string
  /** Sends commits to control and returns the ids that are durable there. */
  readonly send: (commits: readonly SegmentCommit[], signal: AbortSignal) => Promise<readonly string[]>
  /** Called once a commit is durable in the store and before it leaves the outbox. Must be idempotent. */
  readonly onRecorded: (entry: OutboxEntry) => Promise<void>
  /** Called when the entry of a commit was lost before control recorded it: its segment must be delivered again. */
  readonly onLost: (entry: OutboxEntry) => void
  readonly files: Files
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/**
 * The commits to send to control, one fsynced file each, in one queue per endpoint.
 *
 * Owns: keeping commits across restarts, sending them in order, retrying for ever, each endpoint apart. Does not own: when a segment may be
 * committed, how it is removed.
 * Law: an entry is removed only after control recorded it and `onRecorded` resolved. A failure holds only the endpoint that has it: after a
 * request with several commits failed, each of them is sent alone. Only one batch is in memory, because many commits may accumulate while
 * control is unreachable.
 */
export class Outbox implements Service {
  readonly name = 'outbox'
  readonly #options: OutboxOptions
  readonly #files: OutboxFiles
  /** By endpoint id. The endpoint that waits longest is first. */
  readonly #queues = new Map<string, OutboxQueue>()
  /** When each was added, or found at the start, on the monotonic clock. The oldest is first. */
  readonly #addedAt = new Map<string, number>()
  readonly #outage: Backoff
  readonly #stopping = new AbortController()
  #wake: () => void = () => undefined
  #sending: Promise<void> = Promise.resolve()

  constructor(options: OutboxOptions) {
    this.#options = options
    this.#files = new OutboxFiles(options)
    this.#outage = new Backoff({ delayMsMin: 100, delayMsMax: 10_000, random: options.random })
  }

  async start(): Promise<void> {
    await this.#files.prepare()
    for (const entry of await this.#files.list()) this.#enqueue(entry)
    this.#sending = this.#sendAll()
  }

  /** Sends until every endpoint is done or held back, or the signal aborts. The rest stays on disk. */
  async stop(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    while (!signal.aborted && this.#queues.values().some(({ isProgressing }) => isProgressing)) await sleep(clock, 20, signal)
    this.#stopping.abort()
    await this.#sending
    await Promise.all([...this.#queues.values()].map((queue) => queue.settled()))
  }

  has(id: string): boolean {
    return this.#addedAt.has(id)
  }

  get size(): number {
    return this.#addedAt.size
  }

  /** How long the oldest commit has been here, since the start of this process at most; 0 if there is none. */
  get oldestMs(): number {
    const [addedAt] = this.#addedAt.values()
    return addedAt === undefined ? 0 : this.#options.clock.monotonic() - addedAt
  }

  /** Whether commits of the endpoint wait for control. */
  hasAnyOf(endpointId: string): boolean {
    return (this.#queues.get(endpointId)?.size ?? 0) > 0
  }

  /** Returns why commits of an endpoint cannot be sent, or its delivered segments cannot be removed; null if nothing fails. */
  reasonOf(endpointId: string): string | null {
    return this.#queues.get(endpointId)?.reason ?? null
  }

  /** Adds a commit. It is durable when this resolves. */
  async add(commit: SegmentCommit): Promise<void> {
    const { id, endpoint_id, log, seq } = commit
    const entry = { id, endpoint_id, log, seq }
    await this.#files.write(entry, commit)
    this.#enqueue(entry)
    this.#wake()
  }

  #enqueue(entry: OutboxEntry): void {
    const { clock, random, logger } = this.#options
    const queue =
      this.#queues.get(entry.endpoint_id) ??
      new OutboxQueue({ remove: (recorded) => this.#remove(recorded), clock, random, logger })
    this.#queues.set(entry.endpoint_id, queue)
    queue.add(entry)
    if (!this.#addedAt.has(entry.id)) this.#addedAt.set(entry.id, clock.monotonic())
  }

  async #sendAll(): Promise<void> {
    const { signal } = this.#stopping
    const { logger } = this.#options
    const load = { files: this.#files, onLost: (entry: OutboxEntry) => this.#forgetLost(entry), logger }
    while (!signal.aborted) {
      const shares = this.#nextShares()
      if (shares.length === 0) await this.#rest()
      else await this.#send(await loadBatch(shares, load))
    }
  }

  /** Waits for the next commit that may be sent. */
  async #rest(): Promise<void> {
    const woken = new AbortController()
    this.#wake = () => woken.abort()
    const waitMs = this.#queues.values().reduce((least, queue) => Math.min(least, queue.waitMs ?? least), restMsMax)
    await sleep(this.#options.clock, waitMs, AbortSignal.any([woken.signal, this.#stopping.signal]))
  }

  /** Picks what the next request sends. During an outage it is one commit, which finds out whether control is back. */
  #nextShares(): readonly Share[] {
    const shares = new Map<string, Share>()
    let left = this.#outage.attempts > 0 ? 1 : batchMax
    for (const [endpointId, queue] of this.#queues) {
      if (left <= 0) break
      if (queue.waitMs !== 0 || (queue.sendsAlone && shares.size > 0)) continue
      const entries = queue.next(left)
      shares.set(endpointId, { endpointId, queue, entries })
      left = queue.sendsAlone ? 0 : left - entries.length
    }
    for (const [endpointId, { queue }] of shares) {
      this.#queues.delete(endpointId)
      this.#queues.set(endpointId, queue)
    }
    return [...shares.values()]
  }

  #forgetLost(entry: OutboxEntry): void {
    this.#queues.get(entry.endpoint_id)?.drop(entry)
    this.#addedAt.delete(entry.id)
    this.#forgetIfEmpty(entry.endpoint_id)
    this.#options.onLost(entry)
  }

  async #send({ shares, commits }: Batch): Promise<void> {
    const { send, logger } = this.#options
    const { signal } = this.#stopping
    if (commits.length === 0) return
    try {
      const recorded = new Set(await send(commits, signal))
      for (const { endpointId, queue, entries } of shares) {
        const missing = entries.find(({ id }) => !recorded.has(id))
        // The later ones of this endpoint wait for it, to keep their order.
        for (const entry of entries.slice(0, missing && entries.indexOf(missing))) queue.record(entry)
        if (missing !== undefined) queue.delay(missing, `control did not record commit ${missing.id}`)
        void queue.startRemoval(signal)?.then(() => this.#forgetIfEmpty(endpointId))
      }
      if (this.#outage.attempts >= attemptsOfOutage) logger.notice({ waiting: this.size }, 'commit reporting restored')
      this.#outage.reset()
    } catch (error) {
      if (!signal.aborted) await this.#handleFailure(shares, error)
    }
  }

  async #handleFailure(shares: readonly Share[], error: unknown): Promise<void> {
    const { clock, logger } = this.#options
    const status = error instanceof ControlError ? error.status : 0
    const isRefusal = status >= 400 && status < 500 && !unrelatedStatuses.includes(status)
    const [first, ...others] = shares.flatMap(({ queue, entries }) => entries.map((entry) => ({ queue, entry })))
    // Any failure may have been caused by one of the commits. Sending each of them alone finds it.
    if (others.length > 0) for (const { queue, entries } of shares) queue.sendAlone(entries.length)
    else if (isRefusal || status === 500) {
      first?.queue.delay(first.entry, `control did not record commit ${first.entry.id}: ${errorMessage(error)}`)
    }
    if (isRefusal) {
      this.#outage.reset()
      return
    }
    const delayMs = this.#outage.next()
    if (this.#outage.attempts % 20 === attemptsOfOutage) {
      logger.warn({ waiting: this.size, reason: errorMessage(error) }, 'commit reporting failed; retrying')
    }
    await sleep(clock, delayMs, this.#stopping.signal)
  }

  async #remove(entry: OutboxEntry): Promise<void> {
    await this.#options.onRecorded(entry)
    await this.#files.remove(entry)
    this.#addedAt.delete(entry.id)
  }

  #forgetIfEmpty(endpointId: string): void {
    if (this.#queues.get(endpointId)?.size === 0) this.#queues.delete(endpointId)
  }
}
