/**
 * Bounds the time that views take on a segment.
 *
 * Law: work on a view ends in time, however many statements it takes. A statement outside of such work has a timeout of its own.
 */
import { type StatementOptions, StatementTimeout } from '#duckdb/database.ts'
import type { Clock } from '#lib/clock.ts'
import { buildLimits } from './limits.ts'

export type ViewDeadlineOptions = {
  readonly signal: AbortSignal
  /** For all statements of one view. Several views that are extracted together may take as many times as long. */
  readonly viewTimeoutMs: number
  readonly clock: Clock
}

export class ViewDeadline {
  readonly #options: ViewDeadlineOptions
  /** On the monotonic clock: when the current work has to end. */
  #endsAt = Number.POSITIVE_INFINITY

  constructor(options: ViewDeadlineOptions) {
    this.#options = options
  }

  /** Runs work on a number of views. Throws StatementTimeout if it takes too long. */
  async run<T>(views: number, work: () => Promise<T>): Promise<T> {
    const timeoutMs = this.#options.viewTimeoutMs * views
    this.#endsAt = this.#options.clock.monotonic() + timeoutMs
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StatementTimeout)) throw error
      throw new StatementTimeout(`its extraction took longer than ${Math.round(timeoutMs / 100) / 10} s`)
    } finally {
      this.#endsAt = Number.POSITIVE_INFINITY
    }
  }

  /** Options of the next statement. */
  get statement(): StatementOptions {
    const leftMs = this.#endsAt - this.#options.clock.monotonic()
    return { signal: this.#options.signal, timeoutMs: Math.min(buildLimits.statementTimeoutMs, Math.max(1, leftMs)) }
  }
}
