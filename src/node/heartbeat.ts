import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import { newIncarnation, type Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Heartbeat as Message } from '#model/node-protocol.ts'

const intervalMs = 2_000
/**
 * Control counts a node as silent after seven seconds. A process of control that is cut off from its database lets messages hang, and a load
 * balancer leads to it until it notices: so three go out before that. The last one has the time that a slow control takes.
 */
const timeoutsMs = [1_500, 1_500, 3_000]
/** Control may be starting at the same time, so a few failures are normal. */
const failuresBeforeWarning = 5

export interface HeartbeatSink {
  sendHeartbeat(message: Message, signal: AbortSignal): Promise<unknown>
}

export type HeartbeatOptions = {
  readonly control: HeartbeatSink
  /** Returns the current state of the process. */
  readonly message: () => Message
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/** Reports the state of a process to control, at start and every two seconds. A lost report is harmless: the next one is complete. */
export class Heartbeat implements Service {
  readonly name = 'heartbeat'
  readonly #beats: Periodic

  constructor({ control, message, clock, random, logger }: HeartbeatOptions) {
    const run = newIncarnation(random)
    let number = 0
    this.#beats = new Periodic({
      name: this.name,
      intervalMs,
      async run(signal) {
        for (const [attempt, timeoutMs] of timeoutsMs.entries()) {
          const late = clock.timeout(timeoutMs)
          try {
            number += 1
            await control.sendHeartbeat({ ...message(), order: { run, number } }, AbortSignal.any([signal, late]))
            return
          } catch (error) {
            // The next connection may lead to a control process that responds.
            if (!late.aborted || attempt === timeoutsMs.length - 1) throw error
          }
        }
      },
      runAtStart: true,
      failure: 'heartbeat failed',
      recovery: 'heartbeat restored',
      level: 'warn',
      failuresBeforeLog: failuresBeforeWarning,
      clock,
      logger,
    })
  }

  start(): Promise<void> {
    return this.#beats.start()
  }

  stop(): Promise<void> {
    return this.#beats.stop()
  }

  /** Sends the next heartbeat now, because the state changed. */
  beatNow(): void {
    this.#beats.runNow()
  }
}
