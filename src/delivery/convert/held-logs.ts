import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { FailingView } from '#model/node-protocol.ts'
import type { DeliveryRun } from '../segments/delivery-run.ts'
import type { RequiredViewFailed } from './build/failures.ts'

/** Logs that wait because a required view fails on some of their segments, with the report and the log lines about that. */
export class HeldLogs {
  readonly #clock: Clock
  readonly #logger: Logger
  /** By log, the segments that are held, and the view that fails on each. */
  readonly #held = new Map<string, Map<string, FailingView>>()

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock
    this.#logger = logger
  }

  has(logName: string): boolean {
    return this.#held.has(logName)
  }

  hold(id: string, error: RequiredViewFailed, { segment: { logName }, report }: DeliveryRun): void {
    const { view_id, name, version } = error.view
    const held = this.#held.get(logName) ?? new Map<string, FailingView>()
    this.#held.set(logName, held)
    const known = held.values().find((failing) => failing.view_id === view_id)
    const failing = known ?? { view_id, since: isoTimestamp(this.#clock.now()) }
    held.set(id, failing)
    report(error.message, failing)
    if (known !== undefined) return
    this.#logger.error(
      { segment: id, endpoint: logName, view: name, version, reason: error.message },
      'required view failed; its log waits',
    )
  }

  /** Returns whether the segment was the last one of its log that was held. */
  release(id: string, logName: string): boolean {
    const held = this.#held.get(logName)
    if (held === undefined || !held.delete(id) || held.size > 0) return false
    return this.#held.delete(logName)
  }
}
