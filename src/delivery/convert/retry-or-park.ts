/**
 * Retries work on a segment that needs no destination, has damaged segments salvaged, and parks a segment that fails because of its content.
 *
 * Owns: what counts as such a failure. Does not own: the work, the record of parked segments (parked-segments.ts).
 * Law: a fault of the node parks nothing, however long it lasts. A segment is parked only after `contentFailuresMax` failures that neither
 * the operating system nor the configuration explains, or `crashesMax` crashes, each followed by a conversion of something else that succeeded.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Backoff } from '#lib/retry.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ThrottledWarnings } from '#lib/throttled-warnings.ts'
import { SegmentError } from '#log/segment-error.ts'
import type { SegmentSource } from '#log/segment-source.ts'
import { DeliveryEnded, type DeliveryRun, SegmentSalvaged } from '../segments/delivery-run.ts'
import type { Endpoints } from '../segments/endpoints.ts'
import { deliveryLimits } from '../segments/limits.ts'
import type { ParkedSegments } from '../segments/parked-segments.ts'
import { CallerRetries, ConversionCrashed } from './build/failures.ts'
import { isTransient, NotConfiguredError } from './build/transient-error.ts'

export type RetryOrParkOptions = {
  readonly segments: SegmentSource
  readonly parked: ParkedSegments
  readonly endpoints: Endpoints
  readonly warnings: ThrottledWarnings
  readonly clock: Clock
  readonly logger: Logger
}

export type Work<T> = {
  readonly attempt: () => Promise<T>
  /** Converts something else. Throws if that fails. */
  readonly proveHealth: () => Promise<void>
}

/**
 * Throws DeliveryEnded if nothing is left to deliver now, SegmentSalvaged if its intact frames are, CallerRetries, or the run's abort
 * reason.
 */
export async function retryOrPark<T>(
  { segments, parked, endpoints, warnings, clock, logger }: RetryOrParkOptions,
  id: string,
  { segment, report, signal }: DeliveryRun,
  { attempt, proveHealth }: Work<T>,
): Promise<T> {
  const { logName } = segment
  const { retryDelayMsMin, crashDelayMsMin, retryDelayMsMax, contentFailuresMax, crashesMax } = deliveryLimits
  const delay = new Backoff({ delayMsMin: retryDelayMsMin, delayMsMax: retryDelayMsMax })
  const crashDelay = new Backoff({ delayMsMin: crashDelayMsMin, delayMsMax: retryDelayMsMax })
  let contentFailures = 0
  let crashes = 0
  const park = async (reason: string): Promise<never> => {
    await parked.park(id, reason)
    logger.error({ segment: id, endpoint: logName, reason }, 'segment parked')
    throw new DeliveryEnded('parked')
  }
  /** Returns if the segment turned out to be intact when it was read again. */
  const salvage = async (error: SegmentError): Promise<void> => {
    const salvaged = await segments.salvage(segment).catch((failure: unknown) => {
      if (failure instanceof SegmentError) return { outcome: 'unreadable' as const }
      throw failure
    })
    if (salvaged.outcome === 'intact') return
    if (salvaged.outcome === 'unreadable') return await park(error.message)
    logger.error({ segment: id, endpoint: logName, ...salvaged }, `damaged segment ${salvaged.outcome}`)
    if (salvaged.outcome === 'quarantined') throw new DeliveryEnded('quarantined')
    await sleep(clock, delay.next(), signal)
    throw new SegmentSalvaged()
  }
  /** Returns why the work has to be repeated. */
  const judge = async (error: unknown): Promise<unknown> => {
    if (!(await segments.has(segment).catch(() => true))) throw new DeliveryEnded('gone')
    if (error instanceof SegmentError) await salvage(error)
    else if (isTransient(error)) return error
    await proveHealth()
    if (error instanceof ConversionCrashed) crashes += 1
    else contentFailures += 1
    return contentFailures >= contentFailuresMax || crashes >= crashesMax ? await park(errorMessage(error)) : error
  }
  for (;;) {
    signal.throwIfAborted()
    const updated = endpoints.nextUpdate()
    try {
      const result = await attempt()
      report(null)
      return result
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof CallerRetries) throw error
      const cause = await judge(error).catch((failure: unknown) => failure)
      signal.throwIfAborted()
      if (cause instanceof DeliveryEnded || cause instanceof SegmentSalvaged) throw cause
      const reason = errorMessage(cause)
      report(reason)
      const warned = cause instanceof NotConfiguredError ? 'not configured' : logName
      warnings.warn(warned, { segment: id, endpoint: logName, reason }, 'conversion failed')
      const delayMs = cause instanceof ConversionCrashed ? crashDelay.next() : delay.next()
      await sleep(clock, delayMs, AbortSignal.any([signal, updated]))
    }
  }
}
