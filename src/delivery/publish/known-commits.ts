/**
 * Asks control whether the commit of a segment is recorded.
 *
 * Owns: how long delivery waits for control. Does not own: what happens to the segment.
 * Law: nothing on the data path waits for control for long. After a start, control may still be starting too, so the first questions wait
 * for it. Once it has been away for that long, markers alone decide (adopter.ts).
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { CommitsFound } from '#model/node-protocol.ts'
import type { DeliveryRun } from '../segments/delivery-run.ts'
import { deliveryLimits } from '../segments/limits.ts'

export type KnownCommit = CommitsFound['commits'][number]

export type KnownCommitsOptions = {
  readonly find: (ids: readonly string[], signal: AbortSignal) => Promise<readonly KnownCommit[]>
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

export class KnownCommits {
  readonly #options: KnownCommitsOptions
  /** On the monotonic clock: until then, questions wait for control. */
  readonly #waitUntil: number
  #isAway = false

  constructor(options: KnownCommitsOptions) {
    this.#options = options
    this.#waitUntil = options.clock.monotonic() + deliveryLimits.controlWaitMsMax
  }

  /** Returns undefined if there is no such commit, or control is away. Throws only the signal's reason. */
  async find(id: string, { signal, report }: Pick<DeliveryRun, 'signal' | 'report'>): Promise<KnownCommit | undefined> {
    const { clock, random, logger } = this.#options
    const delay = new Backoff({ delayMsMin: deliveryLimits.retryDelayMsMin, delayMsMax: deliveryLimits.lookupTimeoutMs, random })
    let hasWaited = false
    const end = () => {
      if (hasWaited) report(null)
    }
    for (;;) {
      signal.throwIfAborted()
      try {
        const known = await this.ask(id, signal)
        end()
        this.#isAway = false
        return known
      } catch (error) {
        signal.throwIfAborted()
        const reason = errorMessage(error)
        if (clock.monotonic() >= this.#waitUntil) {
          if (!this.#isAway) logger.warn({ reason }, 'control not asked about earlier commits; markers decide')
          this.#isAway = true
          end()
          return undefined
        }
        hasWaited = true
        report(`waits to ask control whether the segment was delivered before: ${reason}`)
        await sleep(clock, delay.next(), signal)
      }
    }
  }

  /** The same, but throws if control is away. */
  async ask(id: string, signal: AbortSignal): Promise<KnownCommit | undefined> {
    const { find, clock } = this.#options
    const [known] = await find([id], AbortSignal.any([signal, clock.timeout(deliveryLimits.lookupTimeoutMs)]))
    return known
  }
}
