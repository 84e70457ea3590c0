import type { Registry } from 'prom-client'
import { observableMetrics } from '#lib/metrics.ts'

/** Counts on the hot path: plain numbers, turned into metrics when they are scraped. */
export class HttpCounters {
  records = 0
  /** Size of all bodies as they were sent. */
  receivedBytes = 0
  /** Size of accepted bodies, decompressed, as they are stored in the WAL. */
  acceptedBytes = 0
  /** Requests whose client left before they were complete. */
  aborted = 0
  readonly requestsByStatus = new Map<number, number>()

  countResponse(status: number): void {
    this.requestsByStatus.set(status, (this.requestsByStatus.get(status) ?? 0) + 1)
  }

  accepted(records: number, bytes: number, status: number): void {
    this.records += records
    this.acceptedBytes += bytes
    this.countResponse(status)
  }
}

export function registerHttpMetrics(registry: Registry, counters: HttpCounters): void {
  const { counter, counters: labelled } = observableMetrics(registry)
  labelled(
    'inlet_ingest_requests_total',
    'POST /v1/ingest and the other paths that take records, by response status',
    'status',
    () => counters.requestsByStatus,
  )
  counter('inlet_ingest_records_total', 'records accepted', () => counters.records)
  counter('inlet_ingest_received_bytes_total', 'bytes of bodies as they were sent', () => counters.receivedBytes)
  counter('inlet_ingest_accepted_bytes_total', 'bytes of accepted bodies, decompressed', () => counters.acceptedBytes)
  counter('inlet_ingest_aborted_total', 'requests whose client left before they were complete', () => counters.aborted)
}
