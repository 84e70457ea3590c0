/**
 * The wall clock that all control processes on one database share: that of the database.
 *
 * Owns: how far it is ahead of the monotonic clock of this machine. Does not own: who uses it.
 * Law: times that one control process writes and another one compares come from one clock. So the clock of a machine that is wrong, or
 * jumps, changes nothing: no node looks silent because of it, and no token expires early. Between two readings time advances by the
 * monotonic clock, also while the database is away.
 */
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { clusterLimits } from './limits.ts'

export type DatabaseClockOptions = {
  /** Returns the wall clock of the database. */
  readonly readTime: () => Promise<number>
  /** The clock of this machine. */
  readonly clock: Clock
  readonly logger: Logger
}

export class DatabaseClock implements Clock, Service {
  readonly name = 'database clock'
  readonly #options: DatabaseClockOptions
  readonly #reading: Periodic
  #ahead = 0
  #isDifferenceLogged = false

  private constructor(options: DatabaseClockOptions) {
    this.#options = options
    const { clock, logger } = options
    this.#reading = new Periodic({
      name: 'database clock',
      intervalMs: clusterLimits.databaseClockMs,
      run: () => this.#read(),
      failure: 'reading the clock of the database failed',
      recovery: 'reading the clock of the database restored',
      level: 'warn',
      clock,
      logger,
    })
  }

  /** Reads the clock of the database for the first time. */
  static async open(options: DatabaseClockOptions): Promise<DatabaseClock> {
    const opened = new DatabaseClock(options)
    await opened.#read(Number.POSITIVE_INFINITY)
    return opened
  }

  now(): number {
    return Math.floor(this.monotonic() + this.#ahead)
  }

  monotonic(): number {
    return this.#options.clock.monotonic()
  }

  setTimer(callback: () => void, delayMs: number): () => void {
    return this.#options.clock.setTimer(callback, delayMs)
  }

  timeout(delayMs: number): AbortSignal {
    return this.#options.clock.timeout(delayMs)
  }

  nextTurn(callback: () => void): void {
    this.#options.clock.nextTurn(callback)
  }

  start(): Promise<void> {
    return this.#reading.start()
  }

  stop(): Promise<void> {
    return this.#reading.stop()
  }

  /** A slow response says little about the time at which it was made. */
  async #read(roundTripMsMax: number = clusterLimits.databaseClockRoundTripMsMax): Promise<void> {
    const { readTime, clock } = this.#options
    const askedAt = clock.monotonic()
    const time = await readTime()
    const roundTripMs = clock.monotonic() - askedAt
    if (roundTripMs > roundTripMsMax) return
    this.#ahead = time - (askedAt + roundTripMs / 2)
    this.#logDifference()
  }

  #logDifference(): void {
    const { clock, logger } = this.#options
    const seconds = Math.round((clock.now() - this.now()) / 1000)
    const differs = Math.abs(seconds) >= clusterLimits.clockDifferenceSecondsNoted
    if (differs && !this.#isDifferenceLogged) {
      logger.warn(
        { seconds_ahead: seconds },
        'the clock of this machine differs from that of the database, which is used: set both by NTP',
      )
    }
    this.#isDifferenceLogged = differs
  }
}
