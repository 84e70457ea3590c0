import type { Clock } from './clock.ts'
import type { Service } from './service.ts'
import type { Logger } from './telemetry.ts'

export type PeriodicOptions = {
  readonly name: string
  /** From the end of one time to the beginning of the next. */
  readonly intervalMs: number
  readonly act: () => Promise<void>
  /** What is logged when it throws. The next time comes all the same. */
  readonly failure: string
  readonly clock: Clock
  readonly logger: Logger
}

/** Does something again and again. */
export class Periodic implements Service {
  readonly name: string
  readonly #options: PeriodicOptions
  #cancel: () => void = () => undefined
  #acting: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(options: PeriodicOptions) {
    this.name = options.name
    this.#options = options
  }

  async start(): Promise<void> {
    this.#later()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
    await this.#acting
  }

  #later(): void {
    if (this.#stopped) return
    this.#cancel = this.#options.clock.setTimer(() => {
      this.#acting = this.#act().finally(() => this.#later())
    }, this.#options.intervalMs)
  }

  async #act(): Promise<void> {
    const { act, failure, logger } = this.#options
    try {
      await act()
    } catch (error) {
      logger.error({ err: error }, failure)
    }
  }
}
