import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Backoff } from '#lib/retry.ts'
import type { Logger } from '#lib/telemetry.ts'
import { SegmentError } from '#wal/segment-reader.ts'
import type { CrashLedger } from '../crash-ledger.ts'
import type { DeliveryRun } from '../delivery-run.ts'
import type { Endpoints } from '../endpoints.ts'
import { deliveryLimits } from '../limits.ts'
import type { ThrottledWarnings } from '../throttled-warnings.ts'
import { isTransient, NotConfiguredError } from '../transient-error.ts'

export type RetryOrParkOptions = {
  readonly crashes: CrashLedger
  readonly endpoints: Endpoints
  readonly warnings: ThrottledWarnings
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Retries work on a segment that needs no destination. Transient failures are retried for ever. The segment is parked after
 * `conversionAttemptsMax` other failures, or at once if it is damaged; then the result is undefined. Throws only the run's abort reason.
 */
export async function retryOrPark<T>(
  { crashes, endpoints, warnings, clock, logger }: RetryOrParkOptions,
  id: string,
  { segment: { logName }, report, signal }: DeliveryRun,
  attempt: () => Promise<T>,
): Promise<T | undefined> {
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
      const reason = errorMessage(error)
      report(reason)
      if (!isTransient(error)) failures += 1
      if (failures >= conversionAttemptsMax || error instanceof SegmentError) {
        await crashes.park(id, reason)
        logger.error({ segment: id, endpoint: logName, reason }, 'segment parked')
        return undefined
      }
      const cause = error instanceof NotConfiguredError ? 'not configured' : logName
      warnings.warn(cause, { segment: id, endpoint: logName, reason }, 'conversion failed')
      await sleep(clock, delay.next(), AbortSignal.any([signal, updated]))
    }
  }
}
