/**
 * The epoch that this process last read, and the callers waiting for a change.
 *
 * Owns: waking long polls, calling listeners, polling for changes made by other processes. Does not own: the content of snapshots,
 * incrementing the epoch.
 * Law: a change made by this process wakes waiters at once, a change made by another within `epochPollMs`. Stopping wakes them all.
 */
import { Gauge, type Registry } from 'prom-client'
import { AppError } from '#errors.ts'
import { batchCalls } from '#lib/batch-calls.ts'
import type { Clock } from '#lib/clock.ts'
import { Durations } from '#lib/durations.ts'
import { observableMetrics } from '#lib/metrics.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { clusterLimits } from './limits.ts'

export type EpochFeedOptions = {
  readonly readEpoch: () => Promise<number>
  readonly clock: Clock
  readonly logger: Logger
}

/** In seconds. */
const readBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

type Waiter = { readonly isDue: () => boolean; readonly resolve: () => void }

export class EpochFeed implements Service {
  readonly name = 'epoch feed'
  readonly #options: EpochFeedOptions
  readonly #waiters = new Set<Waiter>()
  readonly #listeners: ((epoch: number) => Promise<void>)[] = []
  readonly #polling: Periodic
  #epoch = -1
  /** How long reads of the epoch took, at least one a second. */
  readonly readSeconds = new Durations(readBounds)
  readonly #refresh = batchCalls<undefined, number>(() => this.#read())
  #stopped = false

  constructor(options: EpochFeedOptions) {
    const { clock, logger } = options
    this.#options = options
    this.#polling = new Periodic({
      name: 'epoch poll',
      intervalMs: clusterLimits.epochPollMs,
      run: async () => {
        await this.refresh()
      },
      // Logged once per outage, not at every poll.
      failure: 'epoch poll failed',
      recovery: 'epoch poll restored',
      clock,
      logger,
    })
  }

  get current(): number {
    return this.#epoch
  }

  /** Calls the listener with every new epoch, before waiters are woken. */
  subscribe(listener: (epoch: number) => Promise<void>): void {
    this.#listeners.push(listener)
  }

  async start(): Promise<void> {
    await this.refresh()
    await this.#polling.start()
  }

  /** Call after a committed change. Never throws: if this fails, the next poll wakes the waiters. */
  async notifyChanged(): Promise<void> {
    try {
      await this.refresh()
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'change notification delayed')
    }
  }

  /**
   * Reads the epoch and wakes due waiters if it changed. Reads run one at a time: an older one must not overtake a newer one. All callers
   * that wait for the read before share the next one.
   */
  refresh(): Promise<number> {
    return this.#refresh(undefined)
  }

  /** Waits until `isDue`, `waitMs` have passed, or the signal aborts. `isDue` is evaluated at each new epoch. */
  async waitUntil(isDue: () => boolean, waitMs: number, signal: AbortSignal): Promise<void> {
    await this.refresh()
    if (isDue() || waitMs === 0 || this.#stopped || signal.aborted) return
    if (this.#waiters.size >= clusterLimits.snapshotWaitersMax) {
      throw new AppError('unavailable', 'too many nodes are waiting for a snapshot', { retryAfterSeconds: 1 })
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiter = { isDue, resolve }
    const cancelTimer = this.#options.clock.setTimer(resolve, waitMs)
    this.#waiters.add(waiter)
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
    cancelTimer()
    this.#waiters.delete(waiter)
  }

  /** Ends the long polls, so that the listener can close. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const { resolve } of this.#waiters) resolve()
    await this.#polling.stop()
  }

  async #read(): Promise<number> {
    const { readEpoch, clock } = this.#options
    const askedAt = clock.monotonic()
    const epoch = await readEpoch()
    this.readSeconds.observe(clock.monotonic() - askedAt)
    if (epoch !== this.#epoch) {
      // The epoch is stored only after every listener succeeded, so that a failed listener is called again.
      for (const listener of this.#listeners) await listener(epoch)
      this.#epoch = epoch
      for (const { isDue, resolve } of this.#waiters) if (isDue()) resolve()
    }
    return epoch
  }
}

/** Registers the epoch, and how fast the database answers. */
export function registerEpochMetrics(registry: Registry, feed: Pick<EpochFeed, 'current' | 'readSeconds'>): void {
  observableMetrics(registry).histogram(
    'inlet_database_read_seconds',
    'duration of a small read of the database, once a second',
    feed.readSeconds,
  )
  new Gauge({
    name: 'inlet_epoch',
    help: 'changes that nodes must apply, as this control process last read from the database',
    registers: [registry],
    collect() {
      this.set(feed.current)
    },
  })
}
