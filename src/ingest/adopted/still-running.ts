/** Refuses the adoption of the log of a node that still runs: two processes on one log, or on two copies of it, lose what the other one accepts. */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { nodeLimits } from '#model/limits.ts'
import { ControlError } from '#node/control-client.ts'

/** The last heartbeat may be that of a node, or of an adoption, that has just ended. */
const waitMsMax = 2 * nodeLimits.healthySeconds * 1000
const askMs = 1_000

type Options = {
  /** Returns the age of the last heartbeat of the node; null if there is none. */
  readonly ask: () => Promise<number | null>
  readonly clock: Clock
  readonly logger: Logger
  /** Ends the wait. Rejects with its reason. */
  readonly stopping: AbortSignal
}

/** Waits until the node is silent. Throws UserError if it keeps sending heartbeats. A control that cannot be asked delays nothing. */
export async function refuseWhileRunning(nodeId: string, { ask, clock, logger, stopping }: Options): Promise<void> {
  const askUntil = clock.monotonic() + waitMsMax
  for (;;) {
    const seconds = await ask().catch((error: unknown) => {
      // Its credential is lost or released, so control takes no heartbeat of it.
      const isUnknown = error instanceof ControlError && (error.status === 401 || error.status === 404)
      if (!isUnknown) logger.warn({ reason: errorMessage(error) }, 'control not asked whether the node still runs')
      return null
    })
    stopping.throwIfAborted()
    if (seconds === null || seconds > nodeLimits.healthySeconds) return
    if (clock.monotonic() >= askUntil)
      throw new UserError(
        `node ${nodeId} still runs: control received a heartbeat of it ${Math.round(seconds)} s ago. Stop it on the other machine, and try again`,
      )
    await sleep(clock, askMs, stopping)
  }
}
