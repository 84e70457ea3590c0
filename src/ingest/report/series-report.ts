/**
 * Tells control what endpoints accepted and refused over time.
 *
 * Owns: which bucket a count is in, what control does not have yet. Does not own: counting (endpoint-counters.ts).
 * Law: a report is repeated, unchanged, until control responded, so that nothing counts twice. What control could not be told for long is
 * dropped, the oldest first: series are for looking, and what an account used is reported elsewhere (allowances.ts).
 */
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type SeriesReport as Report, seriesItemsMax } from '#model/node-protocol.ts'
import { addIngestCounts } from '#model/series.ts'
import type { EndpointCounts } from '../gate/endpoint-counters.ts'
import { reportLimits } from './limits.ts'

export interface SeriesSink {
  reportSeries(report: Report, signal: AbortSignal): Promise<void>
}

export type SeriesReportOptions = {
  readonly nodeId: string
  readonly counts: Pick<EndpointCounts, 'takeAll'>
  readonly control: SeriesSink
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

type Item = Report['items'][number]

export class SeriesReport implements Service {
  readonly name = 'series report'
  readonly #options: SeriesReportOptions
  readonly #reports: Periodic
  readonly #run: string
  /** By endpoint and bucket, the oldest bucket first. */
  readonly #waiting = new Map<string, Item>()
  #number = 0
  #reportedAtMs: number
  /** The report that control has not responded to. */
  #unconfirmed: Report | undefined

  constructor(options: SeriesReportOptions) {
    const { clock, random, logger } = options
    this.#options = options
    this.#run = random.bytes(9).toString('base64url')
    this.#reportedAtMs = clock.monotonic()
    this.#reports = new Periodic({
      name: this.name,
      intervalMs: reportLimits.seriesReportMs,
      run: (signal) => this.#report(signal, false),
      failure: 'series report failed',
      recovery: 'series report restored',
      level: 'warn',
      failuresBeforeLog: reportLimits.seriesFailuresBeforeLog,
      clock,
      logger,
    })
  }

  start(): Promise<void> {
    return this.#reports.start()
  }

  /** Reports what was counted since the last report. Without control that is lost. */
  async stop(signal: AbortSignal): Promise<void> {
    await this.#reports.stop()
    const timeout = this.#options.clock.timeout(reportLimits.lastSeriesReportMs)
    await this.#report(AbortSignal.any([signal, timeout]), true).catch(() => undefined)
  }

  async #report(signal: AbortSignal, isLast: boolean): Promise<void> {
    const { control, clock } = this.#options
    this.#collect()
    if (!isLast && !this.#isDue()) return
    this.#reportedAtMs = clock.monotonic()
    const items = [...this.#waiting].toSorted(([one], [other]) => (one < other ? -1 : 1))
    for (let next = 0; next < items.length || this.#unconfirmed !== undefined; ) {
      if (this.#unconfirmed === undefined) {
        const some = items.slice(next, next + seriesItemsMax)
        next += some.length
        this.#unconfirmed = this.#take(some)
      }
      await control.reportSeries(this.#unconfirmed, signal)
      this.#unconfirmed = undefined
    }
  }

  #isDue(): boolean {
    const { seriesLiveItemsMax, seriesManyMs } = reportLimits
    const isFew = this.#unconfirmed !== undefined || this.#waiting.size <= seriesLiveItemsMax
    return isFew || this.#options.clock.monotonic() - this.#reportedAtMs >= seriesManyMs
  }

  #collect(): void {
    const { seriesBucketMs, seriesItemsKept } = reportLimits
    const at = isoTimestamp(Math.floor(this.#options.clock.now() / seriesBucketMs) * seriesBucketMs)
    for (const [endpoint_id, counts] of this.#options.counts.takeAll()) {
      const key = `${endpoint_id} ${at}`
      const known = this.#waiting.get(key)
      const sum = known === undefined ? counts : addIngestCounts([known, counts])
      this.#waiting.set(key, { ...sum, endpoint_id, at })
    }
    for (const key of this.#waiting.keys()) {
      if (this.#waiting.size <= seriesItemsKept) return
      this.#waiting.delete(key)
    }
  }

  /** Moves items into a report. */
  #take(items: readonly (readonly [key: string, item: Item])[]): Report {
    for (const [key] of items) this.#waiting.delete(key)
    this.#number += 1
    return { node_id: this.#options.nodeId, run: this.#run, number: this.#number, items: items.map(([, item]) => item) }
  }
}
