/**
 * Holds segments on which a required view fails, and decides when they are converted again.
 *
 * Owns: the report and the log lines about such a view, the back-off, the priority of each attempt. Does not own: a conversion
 * (converter.ts), other failures (retry-or-park.ts).
 * Law: a segment is held until no required view fails on it, and never parked for that. While the views of the endpoint stay as they are,
 * only the first segment of its log is tried again, and only in a slot that no other segment wants.
 */
import { once } from 'node:events'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { Backoff } from '#lib/retry.ts'
import type { SlotPriority } from '#lib/slot-schedule.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { FailingView } from '#model/node-protocol.ts'
import type { DeliveryRun } from '../segments/delivery-run.ts'
import type { Endpoints } from '../segments/endpoints.ts'
import { deliveryLimits } from '../segments/limits.ts'
import { RequiredViewFailed } from './build/failures.ts'

export type ViewHoldsOptions = { readonly endpoints: Endpoints; readonly clock: Clock; readonly logger: Logger }

export class ViewHolds {
  readonly #options: ViewHoldsOptions
  /** By log, the segments that are held, and the view that fails on each. */
  readonly #held = new Map<string, Map<string, FailingView>>()

  constructor(options: ViewHoldsOptions) {
    this.#options = options
  }

  /** Repeats the conversion of a segment until no required view fails on it. Throws what else an attempt throws, or the signal's reason. */
  async convert<T>(
    id: string,
    run: DeliveryRun,
    attempt: (priority: SlotPriority, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { logName } = run.segment
    const { retryDelayMsMin, retryDelayMsMax, heldRestFactor, heldRestMsMax } = deliveryLimits
    const delay = new Backoff({ delayMsMin: retryDelayMsMin, delayMsMax: retryDelayMsMax })
    const { clock, logger } = this.#options
    const turn = new AbortController()
    void run.turn.then(() => turn.abort())
    try {
      if (this.#held.has(logName)) await this.#waitUnlessChanged(this.#viewsOf(logName), turn.signal, run)
      let priority: SlotPriority = 'normal'
      for (;;) {
        const views = this.#viewsOf(logName)
        const startedAt = clock.monotonic()
        // An attempt of low priority may wait for a slot for long.
        using change = priority === 'low' ? this.#changeOf(views, run) : undefined
        try {
          const converted = await attempt(priority, change?.signal ?? run.signal)
          if (this.#release(id, logName)) logger.info({ segment: id, endpoint: logName }, 'required view no longer fails')
          return converted
        } catch (error) {
          run.signal.throwIfAborted()
          if (error instanceof RequiredViewFailed) this.#hold(id, error, run)
          else if (change?.signal.aborted !== true) throw error
        }
        // A later segment cannot be committed before its turn, so until then it costs nothing.
        const isFirst = turn.signal.aborted
        // A view that fails by its timeout would otherwise keep a processor busy.
        const restMs = Math.min(heldRestMsMax, (clock.monotonic() - startedAt) * heldRestFactor)
        const hasChanged = isFirst
          ? await this.#pauseUnlessChanged(views, Math.max(restMs, delay.next()), run)
          : await this.#waitUnlessChanged(views, turn.signal, run)
        priority = isFirst && !hasChanged ? 'low' : 'normal'
      }
    } finally {
      this.#release(id, logName)
    }
  }

  #hold(id: string, error: RequiredViewFailed, { segment: { logName }, report }: DeliveryRun): void {
    const { clock, logger } = this.#options
    const { view_id, name, version } = error.view
    const held = this.#held.get(logName) ?? new Map<string, FailingView>()
    this.#held.set(logName, held)
    const known = held.values().find((failing) => failing.view_id === view_id)
    const failing = known ?? { view_id, since: isoTimestamp(clock.now()) }
    held.set(id, failing)
    report(error.message, failing)
    if (known !== undefined) return
    logger.error(
      { segment: id, endpoint: logName, view: name, version, reason: error.message },
      'required view failed; its log waits',
    )
  }

  /** Returns whether the segment was the last one of its log that was held. */
  #release(id: string, logName: string): boolean {
    const held = this.#held.get(logName)
    if (held === undefined || !held.delete(id) || held.size > 0) return false
    return this.#held.delete(logName)
  }

  /** Watches the views of the endpoint. The signal aborts when they change, or with the run. */
  #changeOf(views: string, run: DeliveryRun): Disposable & { readonly signal: AbortSignal } {
    const changed = new AbortController()
    const over = new AbortController()
    const watch = async () => {
      if (await this.#waitUnlessChanged(views, over.signal, run)) changed.abort()
    }
    watch().catch(() => changed.abort(run.signal.reason))
    return { signal: AbortSignal.any([changed.signal, run.signal]), [Symbol.dispose]: () => over.abort() }
  }

  async #pauseUnlessChanged(views: string, delayMs: number, run: DeliveryRun): Promise<boolean> {
    const over = new AbortController()
    const cancel = this.#options.clock.setTimer(() => over.abort(), delayMs)
    try {
      return await this.#waitUnlessChanged(views, over.signal, run)
    } finally {
      cancel()
    }
  }

  /** Waits until `until` aborts or the endpoint has other views. Returns whether it has. Throws the abort reason of the run. */
  async #waitUnlessChanged(views: string, until: AbortSignal, { segment: { logName }, signal }: DeliveryRun): Promise<boolean> {
    for (;;) {
      signal.throwIfAborted()
      const updated = this.#options.endpoints.nextUpdate()
      if (this.#viewsOf(logName) !== views) return true
      if (until.aborted) return false
      await once(AbortSignal.any([signal, updated, until]), 'abort')
    }
  }

  /** Returns a text that differs if a conversion may end differently. Snapshots also change for reasons of other endpoints. */
  #viewsOf(logName: string): string {
    const { output_formats, views = [] } = this.#options.endpoints.find(logName) ?? {}
    return JSON.stringify([output_formats, views.map(({ definition: _, ...binding }) => binding)])
  }
}
