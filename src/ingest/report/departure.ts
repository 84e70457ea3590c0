/**
 * The time between the request to stop and the end of the listeners.
 *
 * Owns: how long this node goes on serving, and that control, load balancers and clients learn of it. Does not own: DNS (control), the end of
 * the connections (http, mqtt).
 * Law: a node that leaves accepts data until clients no longer find it, within a bound. Where nothing leads clients to it, such as on a
 * single machine, it stops at once.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { HeartbeatRecorded } from '#model/node-protocol.ts'
import { reportLimits } from './limits.ts'

export type DepartureOptions = {
  /** For load balancers that ask `/readyz`. */
  readonly secondsMin: number
  /** Bounds the wait for DNS. */
  readonly secondsMax: number
  /** Tells control at the beginning, or gives up soon. Never rejects. */
  readonly announce: () => Promise<void>
  /** Ends all connections within this time, so that clients connect elsewhere. New ones are still accepted. */
  readonly endConnections: (withinMs: number) => Promise<void>
  /** Whether this node has lost its place: it has been answering 503 since, so nothing is waited for. */
  readonly isFenced: () => boolean
  readonly clock: Clock
  readonly logger: Logger
}

export class Departure {
  readonly #options: DepartureOptions
  #isLeaving = false
  /** On the monotonic clock. Undefined while DNS may lead clients here. */
  #mayStopAt: number | undefined = 0
  #news = new AbortController()

  constructor(options: DepartureOptions) {
    this.#options = options
  }

  get isLeaving(): boolean {
    return this.#isLeaving
  }

  /** Notes what control said about DNS. */
  onHeartbeatRecorded({ may_stop_in_seconds: seconds }: HeartbeatRecorded): void {
    this.#mayStopAt = seconds === null ? undefined : this.#options.clock.monotonic() + seconds * 1000
    this.#news.abort()
  }

  /** Resolves when the listeners may close. */
  async leave(): Promise<void> {
    const { secondsMin, secondsMax, announce, endConnections, isFenced, clock, logger } = this.#options
    const startedAt = clock.monotonic()
    const [earliest, latest] = [startedAt + secondsMin * 1000, startedAt + secondsMax * 1000]
    this.#isLeaving = true
    if (isFenced()) return
    await announce()
    let hasWaited = false
    for (;;) {
      const end = Math.min(latest, Math.max(earliest, this.#mayStopAt ?? latest))
      const waitMs = end - clock.monotonic()
      if (waitMs <= 0) break
      if (!hasWaited) logger.notice({ seconds_max: secondsMax }, 'leaving: serving until clients no longer find this node')
      hasWaited = true
      this.#news = new AbortController()
      await sleep(clock, waitMs, this.#news.signal)
    }
    if (!hasWaited) return
    if (this.#mayStopAt === undefined)
      logger.warn('leaving while DNS may still name this node: INLET_LEAVE_SECONDS_MAX has passed')
    await endConnections(reportLimits.endConnectionsMs)
  }
}
