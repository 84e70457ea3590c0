import type { Clock } from './clock.ts'
import { errorMessage } from './error-message.ts'
import type { Random } from './random.ts'
import { Backoff } from './retry.ts'
import type { Service } from './service.ts'
import type { Logger } from './telemetry.ts'

export type PeriodicOptions = {
  readonly name: string
  /** Delay from the end of one run to the start of the next. */
  readonly intervalMs: number
  /** The signal aborts when the service stops. */
  readonly run: (signal: AbortSignal) => Promise<void> | void
  /** If true, `start` begins the first run. Otherwise it begins after one interval. */
  readonly runAtStart?: boolean
  /** After failed runs the delay grows from `intervalMs` up to this. Otherwise it stays the same. */
  readonly failureDelay?: { readonly msMax: number; readonly random: Random }
  /** Log message when a run throws. Later runs are not affected. */
  readonly failure: string
  /**
   * Log message at the first success after a logged failure. If set, an outage is logged once. Otherwise every failure is logged.
   */
  readonly recovery?: string
  /** Level of the failure's log line. Default `error`. */
  readonly level?: 'warn' | 'error'
  /** Failures in a row before an outage is logged: the other side may be starting at the same time. Default 1. */
  readonly failuresBeforeLog?: number
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Runs a function periodically.
 *
 * Law: runs never overlap; `stop` waits for the one in progress, and none starts after it.
 */
export class Periodic implements Service {
  readonly name: string
  readonly #options: PeriodicOptions
  readonly #stopping = new AbortController()
  readonly #backoff: Backoff | undefined
  #state: 'new' | 'waiting' | 'running' = 'new'
  #runAgain = false
  #failures = 0
  #cancelTimer: () => void = () => undefined
  #running: Promise<void> = Promise.resolve()

  constructor(options: PeriodicOptions) {
    this.name = options.name
    this.#options = options
    const { intervalMs, failureDelay } = options
    if (failureDelay === undefined) return
    this.#backoff = new Backoff({ delayMsMin: intervalMs, delayMsMax: failureDelay.msMax, random: failureDelay.random })
  }

  async start(): Promise<void> {
    if (this.#options.runAtStart === true) this.#run()
    else this.#wait(this.#options.intervalMs)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#cancelTimer()
    await this.#running
  }

  /** Runs now instead of at the end of the interval. During a run, another one follows at once. */
  runNow(): void {
    this.#runAgain = this.#state === 'running'
    if (this.#state !== 'waiting' || this.#stopping.signal.aborted) return
    this.#cancelTimer()
    this.#run()
  }

  #wait(delayMs: number): void {
    this.#state = 'waiting'
    this.#cancelTimer = this.#options.clock.setTimer(() => this.#run(), delayMs)
  }

  #run(): void {
    this.#state = 'running'
    this.#runAgain = false
    this.#running = this.#runOnce().then((delayMs) => {
      if (this.#stopping.signal.aborted) return
      if (this.#runAgain) this.#run()
      else this.#wait(delayMs)
    })
  }

  /** Returns the delay until the next run. */
  async #runOnce(): Promise<number> {
    const { run, intervalMs, recovery, failuresBeforeLog = 1, logger } = this.#options
    try {
      await run(this.#stopping.signal)
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#logFailure(error)
      return this.#backoff?.next() ?? intervalMs
    }
    if (recovery !== undefined && this.#failures >= failuresBeforeLog) logger.notice(recovery)
    this.#failures = 0
    this.#backoff?.reset()
    return intervalMs
  }

  #logFailure(error: unknown): void {
    const { failure, recovery, level = 'error', failuresBeforeLog = 1, logger } = this.#options
    this.#failures += 1
    const isOutageStart = this.#failures === failuresBeforeLog
    if (isOutageStart || (recovery === undefined && this.#failures > failuresBeforeLog)) {
      logger[level]({ reason: errorMessage(error), err: error }, failure)
    }
  }
}
