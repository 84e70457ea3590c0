import type { Clock } from './clock.ts'
import type { Logger } from './telemetry.ts'

type ThrottledWarningsOptions = { readonly clock: Clock; readonly logger: Logger; readonly intervalMs: number }

/** Logs one warning per cause and interval, because thousands of segments or requests may fail for the same cause. */
export class ThrottledWarnings {
  readonly #options: ThrottledWarningsOptions
  readonly #warnedAt = new Map<string, number>()

  constructor(options: ThrottledWarningsOptions) {
    this.#options = options
  }

  warn(cause: string, fields: object, message: string): void {
    const { clock, logger, intervalMs } = this.#options
    const now = clock.monotonic()
    for (const [other, at] of this.#warnedAt) if (now - at >= intervalMs) this.#warnedAt.delete(other)
    if (this.#warnedAt.has(cause)) return
    this.#warnedAt.set(cause, now)
    logger.warn(fields, message)
  }
}
