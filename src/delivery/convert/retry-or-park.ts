import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Backoff } from '#lib/retry.ts'
import type { Logger } from '#lib/telemetry.ts'
import { SegmentError } from '#wal/segment-reader.ts'
import type { CrashLedger } from '../crash-ledger.ts'
import { DeliveryEnded, type DeliveryRun } from '../delivery-run.ts'
import type { Endpoints } from '../endpoints.ts'
import { deliveryLimits } from '../limits.ts'
import type { SegmentSource } from '../segments.ts'
import type { ThrottledWarnings } from '../throttled-warnings.ts'
import { isTransient, NotConfiguredError } from '../transient-error.ts'

export type RetryOrParkOptions = {
  readonly segments: SegmentSource
  readonly crashes: CrashLedger
  readonly endpoints: Endpoints
  readonly warnings: ThrottledWarnings
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Retries work on a segment that needs no destination. Transient failures are retried for ever. The segment is parked after
 * `conversionAttemptsMax` other failures, or at once if it is damaged. A segment that is no longer there is never parked or reported.
 * Throws DeliveryEnded or the run's abort reason.
 */
export async function retryOrPark<T>(
  { segments, crashes, endpoints, warnings, clock, logger }: RetryOrParkOptions,
  id: string,
  { segment, report, signal }: DeliveryRun,
  attempt: () => Promise<T>,
): Promise<T> {
  const { logName } = segment
  const { retryDelayMsMin, retryDelayMsMax, conversionAttemptsMax } = deliveryLimits
  const delay = new Backoff({ delayMsMin: retryDelayMsMin, delayMsMax: retryDelayMsMax })
  let failures = 0
  for (;;) {
    signal.throwIfAborted()
    const updated = endpoints.nextUpdate()
    try {
      const result = await attempt()
      report(null)
      return result
    } catch (error) {
      signal.throwIfAborted()
      if (!(await segments.has(segment).catch(() => true))) throw new DeliveryEnded('gone')
      const reason = errorMessage(error)
      report(reason)
      if (!isTransient(error)) failures += 1
      if (failures >= conversionAttemptsMax || error instanceof SegmentError) {
        await crashes.park(id, reason)
        logger.error({ segment: id, endpoint: logName, reason }, 'segment parked')
        throw new DeliveryEnded('parked')
      }
      const cause = error instanceof NotConfiguredError ? 'not configured' : logName
      warnings.warn(cause, { segment: id, endpoint: logName, reason }, 'conversion failed')
      await sleep(clock, delay.next(), AbortSignal.any([signal, updated]))
    }
  }
}
