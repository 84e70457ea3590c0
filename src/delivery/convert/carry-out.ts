import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { jittered } from '#lib/retry.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ThrottledWarnings } from '#lib/throttled-warnings.ts'
import { DeliveryEnded, type DeliveryRun } from '../segments/delivery-run.ts'
import type { ParkedSegments } from '../segments/parked-segments.ts'
import { NotConfiguredError } from './build/transient-error.ts'
import type { Outcome, Pause, Verdict } from './policy.ts'

export type CarryOutOptions = {
  readonly parked: ParkedSegments
  readonly warnings: ThrottledWarnings
  readonly clock: Clock
  readonly random: Pick<Random, 'fraction'>
  readonly logger: Logger
}

export type Attempt = {
  /** The id of the commit. */
  readonly id: string
  readonly run: DeliveryRun
  /** Aborts if the configuration was updated since the attempt began. */
  readonly updated: AbortSignal
}

/** Does what follows an attempt at a segment: waits, or throws DeliveryEnded. Throws the abort reason of the run. */
export async function carryOut(options: CarryOutOptions, verdict: Verdict, outcome: Outcome, attempt: Attempt): Promise<void> {
  const { parked, logger } = options
  const { id, run } = attempt
  switch (verdict.kind) {
    case 'continue':
    case 'hold':
      return
    case 'retry':
      return pause(options, verdict.pause, 'error' in outcome ? outcome.error : undefined, attempt)
    case 'park': {
      const reason = errorMessage('error' in outcome ? outcome.error : outcome.kind)
      const failure = await parked.park(id, reason).catch((error: unknown) => ({ error }))
      if (failure !== undefined) return pause(options, verdict.pause, failure.error, attempt)
      logger.error({ segment: id, endpoint: run.segment.logName, reason }, 'segment parked')
      throw new DeliveryEnded('parked')
    }
    case 'end':
      await pause(options, verdict.pause, undefined, attempt)
      throw new DeliveryEnded(verdict.as)
  }
}

/** Reports an error if there is one, and waits. */
async function pause(options: CarryOutOptions, pause: Pause, error: unknown, attempt: Attempt): Promise<void> {
  const { warnings, clock, random } = options
  const { segment, report, signal } = attempt.run
  if (error !== undefined) {
    const reason = errorMessage(error)
    report(reason)
    const cause = error instanceof NotConfiguredError ? 'not configured' : segment.logName
    warnings.warn(cause, { segment: attempt.id, endpoint: segment.logName, reason }, 'conversion failed')
  }
  if (pause.stepMs > 0) await sleep(clock, delayOf(pause, random), AbortSignal.any([signal, attempt.updated]))
  signal.throwIfAborted()
}

export function delayOf({ msMin, stepMs }: Pause, random: Pick<Random, 'fraction'>): number {
  return Math.max(msMin, jittered(stepMs, random))
}
