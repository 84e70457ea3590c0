/**
 * The lease of this node on credentials: for how long it accepts them without a word of control.
 *
 * Owns: asking control, and how long an answer counts. Does not own: the configuration itself (node/snapshot-feed.ts).
 * Law: an answer counts from the moment of the question, on the monotonic clock, and only if this node had every change by then. So a key
 * that is revoked is accepted for no longer than the lease, whatever becomes of the node, of control, or of the network between them. The
 * clock decides at each use: a timer may be late.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'

export type CredentialLeaseOptions = {
  /** Null: credentials are accepted without control for ever. */
  readonly seconds: number | null
  /** Asks control whether this node uses every change that was made until now. */
  readonly isCurrent: (signal: AbortSignal) => Promise<boolean>
  /** Called when the lease has ended: open connections must end. */
  readonly onEnded: () => void
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/** Questions in the time of a lease, so that one that is lost ends nothing. */
const questionsPerLease = 6
const intervalMsMax = 5_000
const retries = { delayMsMin: 250, delayMsMax: 2_000 } as const

export class CredentialLease implements Service {
  readonly name = 'lease on credentials'
  readonly #options: CredentialLeaseOptions
  readonly #stopping = new AbortController()
  #confirmedAtMs: number | undefined
  #isEndReported = false
  #cancelTimer: () => void = () => undefined
  #asking: Promise<void> = Promise.resolve()

  constructor(options: CredentialLeaseOptions) {
    this.#options = options
  }

  /** Why no credential is accepted now; undefined while the lease lasts, and without one. */
  get refusal(): string | undefined {
    const { seconds, clock } = this.#options
    if (seconds === null) return undefined
    if (this.#confirmedAtMs === undefined) return `control has not confirmed the credentials of this node since its start`
    const ageMs = clock.monotonic() - this.#confirmedAtMs
    if (ageMs < seconds * 1000) return undefined
    return `control has not confirmed the credentials of this node for ${Math.floor(ageMs / 1000)} s, longer than the lease of ${seconds} s on them`
  }

  async start(): Promise<void> {
    if (this.#options.seconds !== null) this.#asking = this.#askRepeatedly(this.#options.seconds * 1000)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#cancelTimer()
    await this.#asking
  }

  async #askRepeatedly(leaseMs: number): Promise<void> {
    const { isCurrent, clock, random, logger } = this.#options
    const { signal } = this.#stopping
    const backoff = new Backoff({ ...retries, random })
    const intervalMs = Math.min(intervalMsMax, leaseMs / questionsPerLease)
    while (!signal.aborted) {
      const askedAtMs = clock.monotonic()
      const isConfirmed = await isCurrent(AbortSignal.any([signal, clock.timeout(Math.min(intervalMsMax, leaseMs / 2))])).catch(
        (error: unknown) => {
          logger.debug({ reason: errorMessage(error) }, 'credentials not confirmed')
          return false
        },
      )
      if (signal.aborted) return
      if (isConfirmed) {
        this.#confirmed(askedAtMs, leaseMs)
        backoff.reset()
      }
      await sleep(clock, isConfirmed ? intervalMs : backoff.next(), signal)
    }
  }

  #confirmed(askedAtMs: number, leaseMs: number): void {
    const { clock, logger } = this.#options
    this.#confirmedAtMs = askedAtMs
    const leftMs = askedAtMs + leaseMs - clock.monotonic()
    // The answer took longer than the lease.
    if (leftMs <= 0) return
    if (this.#isEndReported) logger.notice('credentials are accepted again')
    this.#isEndReported = false
    this.#cancelTimer()
    this.#cancelTimer = clock.setTimer(() => this.#end(), leftMs)
  }

  #end(): void {
    const { seconds, onEnded, logger } = this.#options
    // A timer may be early by a fraction of a millisecond.
    if (this.refusal === undefined) {
      this.#cancelTimer = this.#options.clock.setTimer(() => this.#end(), 1)
      return
    }
    this.#isEndReported = true
    logger.warn({ lease_seconds: seconds }, 'lease on credentials ended: all are refused until control confirms them')
    onEnded()
  }
}
