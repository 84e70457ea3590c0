/**
 * Metrics of commits and of what jobs add to them, counted as this process records them: each once, over all control processes.
 *
 * Owns: the counts since the start of the process, and the bound on their series. Does not own: the counts that the API shows
 * (store/series/view-counters.ts).
 */
import { LRUCache } from 'lru-cache'
import { Counter, type Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { Durations } from '#lib/durations.ts'
import { observableMetrics } from '#lib/metrics.ts'
import { parseArtifactKind } from '#model/artifact.ts'
import type { SegmentCommit, ViewOutcome } from '#model/commit.ts'
import { controlLimits } from '../limits.ts'

/** In seconds. */
const delayBounds = [0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3_600, 14_400]
const deliveryBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

/** Codes of rows in the DLQ (records/dlq.ts). A node may be newer than this process, so others are counted together. */
const dlqCodes = [
  'invalid_utf8',
  'invalid_json',
  'too_complex',
  'expand_failed',
  'no_partition',
  'missing_required',
  'cast_failed',
] as const
const otherCode = 'other'
/** Counted among `errors` of a view, but not rows of the DLQ. */
const viewFailed = 'view_failed'
const outcomes = ['accepted', 'dropped', 'dlq', 'failed'] as const

type DlqCount = { readonly labels: Readonly<Record<'view_id' | 'view' | 'version' | 'code', string>>; rows: number }

export type DeliveredMetricsOptions = {
  /** Whether to export metrics by view: their readers must be allowed to see all accounts. */
  readonly byView: boolean
  readonly clock: Clock
}

export class DeliveredMetrics {
  readonly #clock: Clock
  readonly #delays = new Durations(delayBounds)
  readonly #waits = new Durations(delayBounds)
  readonly #deliveries = new Durations(deliveryBounds)
  readonly #objectBytes = new Map<string, number>()
  readonly #rowsByOutcome = new Map<string, number>(outcomes.map((outcome) => [outcome, 0]))
  readonly #shadowRecords = new Map<string, number>(outcomes.map((outcome) => [outcome, 0]))
  readonly #dlqRows = new Map<string, number>([...dlqCodes, otherCode].map((code) => [code, 0]))
  readonly #dlqRowsByView = new LRUCache<string, DlqCount>({ max: controlLimits.dlqCodesShown })
  #commits = 0
  #records = 0
  #damagedRecords = 0
  #walBytes = 0
  #viewRows = 0
  #duplicates = 0
  #shortWindows = 0

  constructor(registry: Registry, { byView, clock }: DeliveredMetricsOptions) {
    this.#clock = clock
    const { counter, counters, histogram } = observableMetrics(registry)
    counter('inlet_commits_total', 'segments whose commit this process recorded', () => this.#commits)
    counter('inlet_delivered_records_total', 'records of committed segments', () => this.#records)
    counter('inlet_delivered_wal_bytes_total', 'bytes of committed segments, as they were in the WAL', () => this.#walBytes)
    counters(
      'inlet_delivered_object_bytes_total',
      'bytes of objects of committed segments, by type',
      'type',
      () => this.#objectBytes,
    )
    counter(
      'inlet_damaged_records_total',
      'acknowledged records that were lost to damage on the disk of a node, at least so many',
      () => this.#damagedRecords,
    )
    histogram(
      'inlet_ack_to_commit_seconds',
      'time from the first record of a segment until its commit was recorded: no record of it waited longer',
      this.#waits,
    )
    histogram('inlet_commit_delay_seconds', 'time from the seal of a segment until its commit was recorded', this.#delays)
    histogram(
      'inlet_delivery_duration_seconds',
      'time that a node took for a segment, from the start of its conversion to its last upload',
      this.#deliveries,
    )
    counters('inlet_view_records_total', 'records that views processed, by outcome', 'outcome', () => this.#rowsByOutcome)
    counter(
      'inlet_view_rows_total',
      'rows that views wrote: more than accepted records if views expand arrays',
      () => this.#viewRows,
    )
    counter('inlet_view_duplicates_total', 'rows that dedupe_by of views left out', () => this.#duplicates)
    counter(
      'inlet_view_short_windows_total',
      'segments for which a node had keys of a shorter time than dedupe_within of a view says, counted for each view',
      () => this.#shortWindows,
    )
    counters(
      'inlet_shadow_records_total',
      'records that shadows processed, by outcome: counted, and not written',
      'outcome',
      () => this.#shadowRecords,
    )
    counters('inlet_dlq_rows_total', 'rows that views sent to the DLQ, by code', 'code', () => this.#dlqRows)
    if (byView) this.#registerByView(registry)
  }

  /** Counts a commit that was recorded for the first time. */
  add(commit: SegmentCommit): void {
    const { records, records_damaged, wal_bytes, first_received_at, sealed_at, duration_ms, artifacts, views } = commit
    this.#commits += 1
    this.#records += records
    this.#damagedRecords += records_damaged
    this.#walBytes += wal_bytes
    if (first_received_at !== undefined) this.#waits.observe(this.#clock.now() - Date.parse(first_received_at))
    this.#delays.observe(this.#clock.now() - Date.parse(sealed_at))
    this.#deliveries.observe(duration_ms)
    for (const [kind, { bytes }] of Object.entries(artifacts))
      add(this.#objectBytes, parseArtifactKind(kind)?.type ?? 'other', bytes)
    for (const view of views) {
      if (view.is_shadow !== true) this.addView(view)
      else for (const outcome of outcomes) add(this.#shadowRecords, outcome, view[outcome])
    }
  }

  /** Counts the outcome of a view for a segment, from live delivery or a job, that was recorded for the first time. */
  addView(view: ViewOutcome): void {
    for (const outcome of outcomes) add(this.#rowsByOutcome, outcome, view[outcome])
    this.#viewRows += view.rows ?? view.accepted
    this.#duplicates += view.duplicates ?? 0
    if (view.window_seconds !== undefined) this.#shortWindows += 1
    for (const [code, rows] of Object.entries(view.errors)) {
      if (code === viewFailed) continue
      const known = this.#dlqRows.has(code) ? code : otherCode
      add(this.#dlqRows, known, rows)
      const key = `${view.view_id} ${known}`
      const count = this.#dlqRowsByView.get(key)
      const labels = { view_id: view.view_id, view: view.view_name, version: String(view.view_version), code: known }
      if (count === undefined) this.#dlqRowsByView.set(key, { labels, rows })
      else count.rows += rows
    }
  }

  #registerByView(registry: Registry): void {
    const counts = this.#dlqRowsByView
    new Counter({
      name: 'inlet_view_dlq_rows_total',
      help: 'rows that a view sent to the DLQ, by code, of the views that did so most recently',
      labelNames: ['view_id', 'view', 'version', 'code'],
      registers: [registry],
      collect() {
        this.reset()
        for (const { labels, rows } of counts.values()) this.inc(labels, rows)
      },
    })
  }
}

function add(counts: Map<string, number>, key: string, more: number): void {
  counts.set(key, (counts.get(key) ?? 0) + more)
}
