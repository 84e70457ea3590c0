import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { deliveryLimits } from './limits.ts'

/** Logs one warning per cause and interval, because thousands of segments may wait for the same cause. */
export class ThrottledWarnings {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #warnedAt = new Map<string, number>()

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock
    this.#logger = logger
  }

  warn(cause: string, fields: object, message: string): void {
    const now = this.#clock.monotonic()
    for (const [other, at] of this.#warnedAt) if (now - at >= deliveryLimits.warnIntervalMs) this.#warnedAt.delete(other)
    if (this.#warnedAt.has(cause)) return
    this.#warnedAt.set(cause, now)
    this.#logger.warn(fields, message)
  }
}
