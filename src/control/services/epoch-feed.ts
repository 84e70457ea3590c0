/**
 * The epoch as this process knows it, and those who wait for it to move.
 *
 * Owns: waking long polls and listeners, the poll for changes of other processes. Does not own: what is in a snapshot, who bumps.
 * Law: a change of this process wakes waiters at once, a change of another within `epochPollMs`; stopping wakes them all.
 */
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { controlLimits } from '#model/limits.ts'

export type EpochFeedOptions = {
  readonly readEpoch: () => Promise<number>
  readonly clock: Clock
  readonly logger: Logger
}

export class EpochFeed implements Service {
  readonly name = 'epoch feed'
  readonly #options: EpochFeedOptions
  readonly #waiters = new Set<() => void>()
  readonly #listeners: ((epoch: number) => Promise<void>)[] = []
  #epoch = -1
  #reading: Promise<unknown> = Promise.resolve()
  #cancelPoll: () => void = () => {}
  #stopped = false
  #readFails = false

  constructor(options: EpochFeedOptions) {
    this.#options = options
  }

  get current(): number {
    return this.#epoch
  }

  /** Called with every new epoch, before waiters are woken. */
  subscribe(listener: (epoch: number) => Promise<void>): void {
    this.#listeners.push(listener)
  }

  async start(): Promise<void> {
    await this.refresh()
    this.#pollLater()
  }

  /** To be called after a committed change. Never throws: the change stands, and the poll tells those whom this could not. */
  async changed(): Promise<void> {
    try {
      await this.refresh()
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'a change is told late')
    }
  }

  /** Reads the epoch and tells everyone if it moved. One at a time: an older read must not overtake a newer one. */
  refresh(): Promise<number> {
    const reading = this.#reading.then(() => this.#read())
    this.#reading = reading.catch(() => undefined)
    return reading
  }

  /** Waits until the epoch is another than `known`, `waitMs` have passed, or the signal aborts. Answers the epoch then. */
  async waitForOther(known: number, waitMs: number, signal: AbortSignal): Promise<number> {
    const epoch = await this.refresh()
    if (epoch !== known || waitMs === 0 || this.#stopped || signal.aborted) return epoch
    if (this.#waiters.size >= controlLimits.snapshotWaitersMax) {
      throw new AppError('unavailable', 'too many nodes wait here', { retryAfterSeconds: 1 })
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancelTimer = this.#options.clock.setTimer(resolve, waitMs)
    this.#waiters.add(resolve)
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
    cancelTimer()
    this.#waiters.delete(resolve)
    return this.#epoch
  }

  /** Cuts the long polls, so that the listener can close. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelPoll()
    this.#wake()
  }

  async #read(): Promise<number> {
    const epoch = await this.#options.readEpoch()
    if (epoch !== this.#epoch) {
      // The epoch counts as known only once every listener has taken it, so that one that failed is asked again.
      for (const listener of this.#listeners) await listener(epoch)
      this.#epoch = epoch
      this.#wake()
    }
    return epoch
  }

  #wake(): void {
    for (const resolve of this.#waiters) resolve()
  }

  #pollLater(): void {
    if (this.#stopped) return
    this.#cancelPoll = this.#options.clock.setTimer(() => void this.#poll(), controlLimits.epochPollMs)
  }

  async #poll(): Promise<void> {
    try {
      await this.refresh()
      this.#readFails = false
    } catch (error) {
      // Once per outage: the database being away is one event, not one a second.
      if (!this.#readFails) this.#options.logger.error({ err: error }, 'the epoch cannot be read')
      this.#readFails = true
    }
    this.#pollLater()
  }
}
