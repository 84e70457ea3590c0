/**
 * Makes sure before a conversion that this process knows every change that was made before the segment was sealed.
 *
 * Owns: how long a conversion waits for that. Does not own: fetching the configuration (node/snapshot-feed.ts).
 * Law: nothing on the data path waits for control for long. While control is away, segments are converted with the bindings that this
 * node knows, and without waiting. A check that begins after the segment was sealed covers every change before the seal.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import { settlesBefore } from '#lib/settles-before.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Endpoints } from '../segments/endpoints.ts'
import { deliveryLimits } from '../segments/limits.ts'
import { conversionLimits } from './limits.ts'

export type ConfigurationCheckOptions = {
  /** Asks control whether the configuration of this process is the newest. */
  readonly isCurrent: (signal: AbortSignal) => Promise<boolean>
  readonly endpoints: Endpoints
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

type Answer = { readonly isCurrent: boolean; readonly isAway: boolean; readonly reason: string }

export class ConfigurationCheck {
  readonly #options: ConfigurationCheckOptions
  /** On the monotonic clock. After a start, control may still be starting too, until it was reached once. */
  #startUntil: number
  #isAway = false
  #isWarned = false
  #running: Promise<Answer> = Promise.resolve({ isCurrent: false, isAway: false, reason: '' })
  /** Begins when the running one has ended. */
  #next: Promise<Answer> | undefined

  constructor(options: ConfigurationCheckOptions) {
    this.#options = options
    this.#startUntil = options.clock.monotonic() + deliveryLimits.controlWaitMsMax
  }

  /** Resolves when the configuration is the newest, or control is away. Throws only the signal's reason. */
  async waitUntilCurrent(signal: AbortSignal): Promise<void> {
    const { endpoints, clock, random, logger } = this.#options
    if (this.#isAway) return void this.#ask()
    const until = Math.max(this.#startUntil, clock.monotonic() + conversionLimits.configurationWaitMsMax)
    const delay = new Backoff({ delayMsMin: 10, delayMsMax: conversionLimits.configurationDelayMsMax, random })
    for (;;) {
      const updated = endpoints.nextUpdate()
      const asked = this.#ask()
      await settlesBefore(asked, signal)
      signal.throwIfAborted()
      const { isCurrent, isAway, reason } = await asked
      if (isCurrent) return
      if (clock.monotonic() >= until) {
        this.#isAway = isAway
        if (!this.#isWarned) logger.warn({ reason }, 'configuration not confirmed by control; using the last one')
        this.#isWarned = true
        return
      }
      await sleep(clock, delay.next(), AbortSignal.any([signal, updated]))
    }
  }

  /** Returns the answer to a question that has not been sent yet, so many segments share one. Never rejects. */
  #ask(): Promise<Answer> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      this.#running = this.#send()
      return this.#running
    })
    return this.#next
  }

  async #send(): Promise<Answer> {
    try {
      const { isCurrent: ask, clock } = this.#options
      const isCurrent = await ask(clock.timeout(deliveryLimits.lookupTimeoutMs))
      this.#isAway = false
      this.#startUntil = 0
      if (isCurrent) this.#isWarned = false
      return { isCurrent, isAway: false, reason: 'this node is fetching a newer configuration' }
    } catch (error) {
      return { isCurrent: false, isAway: true, reason: errorMessage(error) }
    }
  }
}
