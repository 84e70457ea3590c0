import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import { settlesBefore } from '#lib/settles-before.ts'
import type { ThrottledWarnings } from '#lib/throttled-warnings.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { NotConfiguredError } from '../convert/build/transient-error.ts'
import type { DeliveryRun, DeliveryTarget, SegmentFacts } from '../segments/delivery-run.ts'
import type { Endpoints } from '../segments/endpoints.ts'
import { deliveryLimits } from '../segments/limits.ts'
import type { Bucket } from './bucket.ts'
import type { DestinationBackoff } from './destination-backoff.ts'

export type DestinationRetryOptions = {
  readonly endpoints: Endpoints
  readonly stores: ObjectStores
  readonly backoff: DestinationBackoff
  readonly warnings: ThrottledWarnings
  readonly clock: Clock
  readonly random: Random
}

/** The destination that is bound to the endpoint. Requests through `bucket` respect its back-off. */
export type BoundDestination = { readonly target: DeliveryTarget; readonly bucket: Bucket }

/** Retries work on a segment's destination for ever, each time with the destination that is currently bound. */
export class DestinationRetry {
  readonly #options: DestinationRetryOptions

  constructor(options: DestinationRetryOptions) {
    this.#options = options
  }

  /**
   * Waits before a conversion, because built files use the same disk as the log. While the destination is failing, only the first segment
   * of each log is converted. The others wait for their turn or for the end of the outage. Throws only the signal's reason.
   */
  async waitForDestination({ name: { endpointId } }: SegmentFacts, { turn, signal, report }: DeliveryRun): Promise<void> {
    const { endpoints, backoff } = this.#options
    for (;;) {
      signal.throwIfAborted()
      const updated = endpoints.nextUpdate()
      const destinationId = endpoints.find(endpointId)?.destination?.id
      const outage = destinationId === undefined ? undefined : backoff.find(destinationId)
      if (outage === undefined) return
      report(outage.reason)
      const isFirst = await settlesBefore(turn, AbortSignal.any([signal, updated, outage.over]))
      if (isFirst) return
    }
  }

  /**
   * Throws only the signal's reason, and what `beforeAttempt` throws. That is called before each attempt, also if no destination is bound, and
   * makes the attempt unnecessary by returning something. A new snapshot and the end of the destination's outage cut the wait short.
   */
  async run<T>(
    { name: { endpointId, seq } }: SegmentFacts,
    { signal, report }: DeliveryRun,
    attempt: (destination: BoundDestination) => Promise<T>,
    beforeAttempt?: () => Promise<T | undefined>,
  ): Promise<T> {
    const { endpoints, stores, backoff, warnings, clock, random } = this.#options
    const { retryDelayMsMin, retryDelayMsMax } = deliveryLimits
    const delay = new Backoff({ delayMsMin: retryDelayMsMin, delayMsMax: retryDelayMsMax, random })
    for (;;) {
      signal.throwIfAborted()
      const updated = endpoints.nextUpdate()
      const settled = await beforeAttempt?.()
      if (settled !== undefined) return settled
      const { account_id = '', destination = null } = endpoints.find(endpointId) ?? {}
      try {
        if (destination === null) throw new NotConfiguredError('no destination is bound to the endpoint')
        const target = { ...destination, session: sessionName({ account_id, endpoint_id: endpointId }) }
        const bucket = backoff.pace(destination.id, () => stores.open(target), { report, signal })
        const result = await attempt({ target, bucket })
        report(null)
        return result
      } catch (error) {
        signal.throwIfAborted()
        const reason = errorMessage(error)
        report(reason)
        warnings.warn(destination?.id ?? 'no destination', { endpoint: endpointId, seq, reason }, 'delivery attempt failed')
        const over = destination === null ? undefined : backoff.find(destination.id)?.over
        await sleep(clock, delay.next(), AbortSignal.any([signal, updated, ...(over === undefined ? [] : [over])]))
      }
    }
  }
}
