import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ingestLimits } from '#model/limits.ts'
import type { Heartbeat as Message } from '#model/node-protocol.ts'

export interface HeartbeatSink {
  sendHeartbeat(message: Message, signal: AbortSignal): Promise<void>
}

export type HeartbeatOptions = {
  readonly control: HeartbeatSink
  readonly nodeId: string
  /** -1 while there is none. */
  readonly appliedEpoch: () => number
  /** Why ingest takes nothing; empty while it is healthy. */
  readonly reasons: () => readonly string[]
  readonly clock: Clock
  readonly logger: Logger
}

/** Tells control how ingest is, at once and then every two seconds. One that is lost doesn't matter: the next one says it all. */
export class Heartbeat implements Service {
  readonly name = 'heartbeat'
  readonly #options: HeartbeatOptions
  readonly #stopping = new AbortController()
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

  async #beat(signal: AbortSignal): Promise<void> {
    const { control, nodeId, appliedEpoch, reasons: why, clock, logger } = this.#options
    let heard = true
    while (!signal.aborted) {
      const reasons = [...why()]
      try {
        const healthy = reasons.length === 0
        await control.sendHeartbeat(
          { process: 'ingest', node_id: nodeId, applied_epoch: appliedEpoch(), healthy, reasons },
          signal,
        )
        if (!heard) logger.info('control hears of this node again')
        heard = true
      } catch (error) {
        if (heard && !signal.aborted) logger.warn({ reason: errorMessage(error) }, 'control does not hear of this node')
        heard = false
      }
      await sleep(clock, ingestLimits.heartbeatMs, signal)
    }
  }
}
