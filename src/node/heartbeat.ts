import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Heartbeat as Message } from '#model/node-protocol.ts'

const intervalMs = 2_000
/** Beats lost in a row that are worth a word: control may be starting beside us. */
const lostWorthAWord = 3

export interface HeartbeatSink {
  sendHeartbeat(message: Message, signal: AbortSignal): Promise<void>
}

export type HeartbeatOptions = {
  readonly control: HeartbeatSink
  /** How the process is now. */
  readonly message: () => Message
  readonly clock: Clock
  readonly logger: Logger
}

/** Tells control how a process is, at once and then every two seconds. One that is lost doesn't matter: the next one says it all. */
export class Heartbeat implements Service {
  readonly name = 'heartbeat'
  readonly #options: HeartbeatOptions
  readonly #stopping = new AbortController()
  #wake = new AbortController()
  #beating: Promise<void> = Promise.resolve()

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    this.#beating = this.#beat(this.#stopping.signal)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#beating
  }

  /** Something changed that control should hear of before the next beat. */
  soon(): void {
    this.#wake.abort()
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const { control, message, clock, logger } = this.#options
    let lost = 0
    while (!signal.aborted) {
      this.#wake = new AbortController()
      try {
        await control.sendHeartbeat(message(), signal)
        if (lost >= lostWorthAWord) logger.info('control hears of this node again')
        lost = 0
      } catch (error) {
        lost += 1
        if (lost === lostWorthAWord && !signal.aborted)
          logger.warn({ reason: errorMessage(error) }, 'control does not hear of this node')
      }
      await sleep(clock, intervalMs, AbortSignal.any([signal, this.#wake.signal]))
    }
  }
}
