/**
 * Chooses the rows of a heartbeat: with many logs, only those that control lacks.
 *
 * Owns: what control has, as far as this process knows. Does not own: the rows (pipeline.ts), storing them (store/nodes/node-reports.ts).
 * Law: once control accepted a heartbeat, it has every row of the node as it was then, but for counts and times that differ for less than
 * `lagRefreshMsMax`. A report names the one that it builds on, and control rejects it if it has another.
 */
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { countSegments, type EndpointLag, type LagReport } from '#model/node-protocol.ts'
import { lagReportLimits } from './limits.ts'

type Sent = { readonly row: EndpointLag; readonly atMs: number }
type Known = { readonly version: string; readonly rows: ReadonlyMap<string, Sent> }

export class LagReports {
  readonly #clock: Clock
  readonly #random: Random
  readonly #run: string
  #reports = 0
  #accepted: Known | undefined
  #sent: Known | undefined

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock
    this.#random = random
    this.#run = random.bytes(6).toString('base64url')
  }

  /** Returns what the next heartbeat says, given the rows of all logs. */
  next(lags: readonly EndpointLag[]): LagReport {
    const before = this.#accepted
    if (before === undefined || lags.length <= lagReportLimits.reportedWhole) return this.#whole(lags)
    const nowMs = this.#clock.monotonic()
    const refreshMs = refreshMsOf(lags)
    const rows = new Map<string, Sent>()
    const lag: EndpointLag[] = []
    for (const row of lags) {
      const sent = before.rows.get(row.endpoint_id)
      const isDue = sent === undefined || isNews(sent.row, row) || (nowMs - sent.atMs >= refreshMs && isOther(sent.row, row))
      if (isDue) lag.push(row)
      rows.set(row.endpoint_id, sent === undefined || isDue ? { row, atMs: nowMs } : sent)
    }
    const lag_gone = [...before.rows.keys()].filter((id) => !rows.has(id))
    const isSame = lag.length === 0 && lag_gone.length === 0
    this.#sent = isSame ? before : { version: this.#newVersion(), rows }
    return { lag, lag_gone, lag_base: before.version, lag_version: this.#sent.version }
  }

  /** Control stored the last report. */
  accept(): void {
    this.#accepted = this.#sent
  }

  /** Control has another report than the one that the last one built on. */
  reject(): void {
    this.#accepted = undefined
  }

  #whole(lags: readonly EndpointLag[]): LagReport {
    if (lags.length <= lagReportLimits.reportedWhole) {
      this.#sent = undefined
      return { lag: [...lags] }
    }
    const nowMs = this.#clock.monotonic()
    // Spread over the time, so that rows are not due all at once from then on.
    const sentAtMs = () => nowMs - this.#random.fraction() * refreshMsOf(lags)
    const version = this.#newVersion()
    this.#sent = { version, rows: new Map(lags.map((row) => [row.endpoint_id, { row, atMs: sentAtMs() }])) }
    return { lag: [...lags], lag_version: version }
  }

  #newVersion(): string {
    this.#reports += 1
    return `${this.#run}-${this.#reports}`
  }
}

/** Number-only changes are sent less often as logs grow in number: a node sends a bounded number of rows a second. */
function refreshMsOf(lags: readonly EndpointLag[]): number {
  return Math.min(lagReportLimits.refreshMsMax, (lags.length * 1000) / lagReportLimits.rowsPerSecond)
}

/** Whether a drain, the status of an endpoint or a receipt may depend on the difference. */
function isNews(one: EndpointLag, other: EndpointLag): boolean {
  return (
    one.closed !== other.closed ||
    one.blocked_by !== other.blocked_by ||
    one.failing_view?.view_id !== other.failing_view?.view_id ||
    one.failing_view?.since !== other.failing_view?.since ||
    one.parked_segments !== other.parked_segments ||
    one.quarantined_segments !== other.quarantined_segments ||
    one.quarantined_first_seq !== other.quarantined_first_seq ||
    one.quarantined_last_seq !== other.quarantined_last_seq ||
    one.scrub_findings !== other.scrub_findings ||
    one.scrub_finding !== other.scrub_finding ||
    (countSegments(one) === 0) !== (countSegments(other) === 0)
  )
}

function isOther(one: EndpointLag, other: EndpointLag): boolean {
  return (
    one.open_segments !== other.open_segments ||
    one.undelivered_segments !== other.undelivered_segments ||
    one.undelivered_bytes !== other.undelivered_bytes ||
    one.records !== other.records ||
    one.first_seq !== other.first_seq ||
    one.last_seq !== other.last_seq ||
    one.oldest_sealed_at !== other.oldest_sealed_at
  )
}
