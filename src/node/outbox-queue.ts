import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { OutboxEntry } from './outbox-files.ts'

/** After this many failed removals, the endpoint waits before it tries the others. */
const removalFailuresMax = 5
/** A failure that repeats is logged once and then at every n-th attempt. */
const attemptsPerWarning = 20

export type OutboxQueueOptions = {
  /** Removes the segment and the entry of a recorded commit. Must be idempotent. */
  readonly remove: (entry: OutboxEntry) => Promise<void>
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/**
 * The commits of one endpoint in the outbox.
 *
 * Owns: their order, the removal of what was recorded, and the back-off of this endpoint alone. Does not own: files and requests (outbox.ts).
 * Law: commits are sent in order of seq. A commit that cannot be sent holds the later ones of its endpoint. A segment that cannot be removed
 * holds nothing.
 */
export class OutboxQueue {
  readonly #options: OutboxQueueOptions
  readonly #waiting = new Map<string, OutboxEntry>()
  /** Their segments and entries are still to be removed. */
  readonly #recorded = new Map<string, OutboxEntry>()
  readonly #sending: StepBackoff
  readonly #removing: StepBackoff
  #removal: Promise<void> | undefined
  /** How many commits are sent one at a time, because a request with them failed. */
  #sentAlone = 0

  constructor(options: OutboxQueueOptions) {
    this.#options = options
    this.#sending = new StepBackoff(options)
    this.#removing = new StepBackoff(options)
  }

  get size(): number {
    return this.#waiting.size + this.#recorded.size
  }

  /** Whether something is being done that has not failed. */
  get isProgressing(): boolean {
    const [isSending, isRemoving] = [this.#waiting.size > 0, this.#recorded.size > 0]
    return (isSending && this.#sending.reason === null) || (isRemoving && this.#removing.reason === null)
  }

  /** Whether its next commit must be sent in a request of its own. */
  get sendsAlone(): boolean {
    return this.#sentAlone > 0
  }

  /** Why its commits cannot be sent or its delivered segments cannot be removed; null if nothing fails. */
  get reason(): string | null {
    return this.#sending.reason ?? this.#removing.reason
  }

  /** Milliseconds until its next commit may be sent. Undefined if it has none. */
  get waitMs(): number | undefined {
    return this.#waiting.size === 0 ? undefined : this.#sending.waitMs
  }

  add(entry: OutboxEntry): void {
    if (!this.#recorded.has(entry.id)) this.#waiting.set(entry.id, entry)
  }

  /** Returns the entries to send next, oldest first. */
  next(max: number): readonly OutboxEntry[] {
    return this.#waiting
      .values()
      .take(this.sendsAlone ? 1 : max)
      .toArray()
  }

  /** Sends the next commits one at a time. */
  sendAlone(commits: number): void {
    this.#sentAlone = Math.max(this.#sentAlone, commits)
  }

  /** Waits before the next attempt to send. */
  delay({ id, endpoint_id }: OutboxEntry, reason: string): void {
    this.#sending.begin(reason)
    if (!this.#sending.isDueForWarning) return
    this.#options.logger.warn({ endpoint: endpoint_id, segment: id, reason }, 'commit held back; retrying')
  }

  /** Forgets a commit that cannot be sent. */
  drop({ id }: OutboxEntry): void {
    this.#waiting.delete(id)
  }

  /** Control has recorded the commit. */
  record(entry: OutboxEntry): void {
    this.#waiting.delete(entry.id)
    this.#recorded.set(entry.id, entry)
    this.#sentAlone = Math.max(0, this.#sentAlone - 1)
    this.#sending.end()
  }

  /** Removes what was recorded, until all of it is gone or the signal aborts. Returns undefined if that is already going on. */
  startRemoval(signal: AbortSignal): Promise<void> | undefined {
    if (this.#removal !== undefined || this.#recorded.size === 0) return undefined
    this.#removal = this.#removeRecorded(signal).finally(() => {
      this.#removal = undefined
    })
    return this.#removal
  }

  /** Resolves when no removal is running. */
  async settled(): Promise<void> {
    await this.#removal
  }

  async #removeRecorded(signal: AbortSignal): Promise<void> {
    const { remove, clock, logger } = this.#options
    while (this.#recorded.size > 0 && !signal.aborted) {
      let failures = 0
      for (const [id, entry] of [...this.#recorded]) {
        if (signal.aborted || failures === removalFailuresMax) break
        try {
          await remove(entry)
          this.#recorded.delete(id)
        } catch (error) {
          failures += 1
          // The others go first at the next attempt.
          this.#recorded.delete(id)
          this.#recorded.set(id, entry)
          this.#removing.reason = `removing the delivered segment ${id} failed: ${errorMessage(error)}`
        }
      }
      if (failures === 0) this.#removing.end()
      else {
        const { reason } = this.#removing
        const delayMs = this.#removing.begin(reason ?? '')
        if (this.#removing.isDueForWarning)
          logger.warn({ segments: this.#recorded.size, reason }, 'segment removal failed; retrying')
        await sleep(clock, delayMs, signal)
      }
    }
  }
}

/** Why a step of one endpoint fails, and when it may be tried again. */
class StepBackoff {
  readonly #clock: Clock
  readonly #backoff: Backoff
  /** On the monotonic clock. */
  #notBefore = 0
  reason: string | null = null

  constructor({ clock, random }: Pick<OutboxQueueOptions, 'clock' | 'random'>) {
    this.#clock = clock
    this.#backoff = new Backoff({ delayMsMin: 100, delayMsMax: 10_000, random })
  }

  get isDueForWarning(): boolean {
    return this.#backoff.attempts % attemptsPerWarning === 1
  }

  get waitMs(): number {
    return Math.max(0, this.#notBefore - this.#clock.monotonic())
  }

  /** Returns the milliseconds until the next attempt. */
  begin(reason: string): number {
    const delayMs = this.#backoff.next()
    this.reason = reason
    this.#notBefore = this.#clock.monotonic() + delayMs
    return delayMs
  }

  end(): void {
    this.reason = null
    this.#notBefore = 0
    this.#backoff.reset()
  }
}
