import type { Clock } from '#lib/clock.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { controlLimits, jobLimits } from '#model/limits.ts'
import { removeJobsFinishedBefore } from '#store/jobs.ts'
import type { Store } from '#store/store.ts'
import { removeViewCountersBefore } from '#store/view-counters.ts'

export type HousekeepingOptions = { readonly store: Store; readonly clock: Clock; readonly logger: Logger }

/** Removes, from time to time, what no answer is made from any more. */
export class Housekeeping implements Service {
  readonly name = 'housekeeping'
  readonly #options: HousekeepingOptions
  #cancel: () => void = () => {}
  #running: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(options: HousekeepingOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    this.#later()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
    await this.#running
  }

  #later(): void {
    if (this.#stopped) return
    this.#cancel = this.#options.clock.setTimer(() => {
      this.#running = this.#run().finally(() => this.#later())
    }, controlLimits.housekeepingIntervalMs)
  }

  async #run(): Promise<void> {
    const { store, clock, logger } = this.#options
    try {
      await removeViewCountersBefore(store.db, clock.now() - controlLimits.viewCountersKeptMs)
      await removeJobsFinishedBefore(store.db, clock.now() - jobLimits.keptMs)
    } catch (error) {
      logger.error({ err: error }, 'old view counters and jobs cannot be removed')
    }
  }
}
