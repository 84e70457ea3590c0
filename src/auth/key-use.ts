/**
 * Reports which keys are used in this process.
 *
 * Owns: which keys were used since the last report. Does not own: the time of a use, which control records.
 * Law: a use costs one addition to a set. A key is reported at most once a minute, so a report that fails is repeated and does no harm.
 */
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { minuteMs } from '#lib/time-units.ts'
import { keyLimits } from '#model/limits.ts'

/** Short, so that people who try out a key see that it works. */
const intervalMs = 2_000
/** Control may be starting at the same time. */
const failuresBeforeWarning = 5

export type KeyUseOptions = {
  /** Passes ids to whoever records the time. */
  readonly report: (ids: readonly string[], signal: AbortSignal) => Promise<unknown>
  /** Returns the keys of connections that are open. Called once a minute. */
  readonly connected?: () => Iterable<string>
  readonly clock: Clock
  readonly logger: Logger
}

export class KeyUse implements Service {
  readonly name = 'key use'
  readonly #options: KeyUseOptions
  readonly #reports: Periodic
  readonly #used = new Set<string>()
  /** Keys of this minute that are reported. */
  readonly #reported = new Set<string>()
  #minute = -1

  constructor(options: KeyUseOptions) {
    const { clock, logger } = options
    this.#options = options
    this.#reports = new Periodic({
      name: this.name,
      intervalMs,
      run: (signal) => this.#report(signal),
      failure: 'key use report failed',
      recovery: 'key use report restored',
      level: 'warn',
      failuresBeforeLog: failuresBeforeWarning,
      clock,
      logger,
    })
  }

  start(): Promise<void> {
    return this.#reports.start()
  }

  stop(): Promise<void> {
    return this.#reports.stop()
  }

  add(keyId: string): void {
    this.#used.add(keyId)
  }

  async #report(signal: AbortSignal): Promise<void> {
    const { report, connected, clock } = this.#options
    const minute = Math.floor(clock.now() / minuteMs)
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#reported.clear()
      for (const id of connected?.() ?? []) this.#used.add(id)
    }
    for (const id of this.#reported) this.#used.delete(id)
    const ids = this.#used.values().take(keyLimits.reportedMax).toArray()
    if (ids.length === 0) return
    await report(ids, signal)
    for (const id of ids) {
      this.#used.delete(id)
      this.#reported.add(id)
    }
  }
}
