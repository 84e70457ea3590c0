/**
 * Chooses the rows of a heartbeat: with many logs, only those that control lacks.
 *
 * Owns: what control has, as far as this process knows. Does not own: the rows (pipeline.ts), storing them (store/nodes/node-reports.ts).
 * Law: once control accepted a heartbeat, it has every row of the node as it was then, but for counts and times that differ for less than
 * `lagRefreshMsMax`: `counted_at` is not later than any row that control has. A report names the one that it builds on, and control rejects it if it has another.
 */
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { countSegments, type EndpointLag, type LagReport } from '#model/node-protocol.ts'
import { lagReportLimits } from './limits.ts'

/** `countedAt`: as of when the row is. */
type Sent = { readonly row: EndpointLag; readonly atMs: number; readonly countedAt: number }
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

  /** Returns what the next heartbeat says, given the rows of all logs, and as of when they are (epoch ms). Undefined: that is not known. */
  next(lags: readonly EndpointLag[], countedAt?: number): LagReport {
    const before = this.#accepted
    const now = countedAt ?? Number.POSITIVE_INFINITY
    if (before === undefined || lags.length <= lagReportLimits.reportedWhole)
      return { ...this.#whole(lags, now), ...toCountedAt(now) }
    const nowMs = this.#clock.monotonic()
    const refreshMs = refreshMsOf(lags)
    const rows = new Map<string, Sent>()
    const lag: EndpointLag[] = []
    for (const row of lags) {
      const sent = before.rows.get(row.endpoint_id)
      const hasNews = sent === undefined || isNews(sent.row, row)
      const isKept = !hasNews && !isOther(sent.row, row)
      const isDue = hasNews || (!isKept && nowMs - sent.atMs >= refreshMs)
      if (isDue) lag.push(row)
      if (isDue) rows.set(row.endpoint_id, { row, atMs: nowMs, countedAt: now })
      else rows.set(row.endpoint_id, isKept ? { ...sent, countedAt: now } : sent)
    }
    const lag_gone = [...before.rows.keys()].filter((id) => !rows.has(id))
    const isSame = lag.length === 0 && lag_gone.length === 0
    this.#sent = { version: isSame ? before.version : this.#newVersion(), rows }
    const { version: lag_version } = this.#sent
    const oldest = rows.values().reduce((least, sent) => Math.min(least, sent.countedAt), now)
    return { lag, lag_gone, lag_base: before.version, lag_version, ...toCountedAt(oldest) }
  }

  /** Control stored the last report. */
  accept(): void {
    this.#accepted = this.#sent
  }

  /** Control has another report than the one that the last one built on. */
  reject(): void {
    this.#accepted = undefined
  }

  #whole(lags: readonly EndpointLag[], countedAt: number): LagReport {
    if (lags.length <= lagReportLimits.reportedWhole) {
      this.#sent = undefined
      return { lag: [...lags] }
    }
    const nowMs = this.#clock.monotonic()
    // Spread over the time, so that rows are not due all at once from then on.
    const sentAtMs = () => nowMs - this.#random.fraction() * refreshMsOf(lags)
    const version = this.#newVersion()
    this.#sent = { version, rows: new Map(lags.map((row) => [row.endpoint_id, { row, atMs: sentAtMs(), countedAt }])) }
    return { lag: [...lags], lag_version: version }
  }

  #newVersion(): string {
    this.#reports += 1
    return `${this.#run}-${this.#reports}`
  }
}

/** In whole seconds: control records heartbeats that are alike together. */
function toCountedAt(ms: number): Pick<LagReport, 'counted_at'> {
  return Number.isFinite(ms) ? { counted_at: Math.floor(ms / 1000) * 1000 } : {}
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
