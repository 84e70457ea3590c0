import type { Registry } from 'prom-client'
import { readings } from '#lib/telemetry.ts'

/** Counts on the hot path: plain numbers, turned into metrics when somebody asks. */
export class IngestCounters {
  records = 0
  /** Bytes of bodies as they came in. */
  receivedBytes = 0
  /** Bytes of accepted bodies, decompressed: what lies in the WAL. */
  acceptedBytes = 0
  /** Requests whose client went away before they were whole. */
  aborted = 0
  /** Connections closed at once because there were too many. */
  droppedConnections = 0
  readonly requestsByStatus = new Map<number, number>()

  answered(status: number): void {
    this.requestsByStatus.set(status, (this.requestsByStatus.get(status) ?? 0) + 1)
  }

  accepted(records: number, bytes: number): void {
    this.records += records
    this.acceptedBytes += bytes
    this.answered(202)
  }
}

export type IngestGauges = {
  readonly connections: () => number
  readonly inFlightBytes: () => number
  readonly walBytesOnDisk: () => number
  readonly appliedEpoch: () => number
}

export function registerMetrics(registry: Registry, counters: IngestCounters, gauges: IngestGauges): void {
  const { counter, counters: labelled, gauge } = readings(registry)
  labelled('inlet_ingest_requests_total', 'POST /v1/ingest by status of the answer', 'status', () => counters.requestsByStatus)
  counter('inlet_ingest_records_total', 'records accepted', () => counters.records)
  counter('inlet_ingest_received_bytes_total', 'bytes of bodies as they were sent', () => counters.receivedBytes)
  counter('inlet_ingest_accepted_bytes_total', 'bytes of accepted bodies, decompressed', () => counters.acceptedBytes)
  counter('inlet_ingest_aborted_total', 'requests whose client went away before they were whole', () => counters.aborted)
  counter(
    'inlet_ingest_dropped_connections_total',
    'connections closed because there were too many',
    () => counters.droppedConnections,
  )
  gauge('inlet_ingest_connections', 'open connections', gauges.connections)
  gauge('inlet_ingest_in_flight_bytes', 'request bytes held in memory', gauges.inFlightBytes)
  gauge('inlet_wal_bytes_on_disk', 'bytes of WAL segments on disk', gauges.walBytesOnDisk)
  gauge('inlet_applied_epoch', 'epoch of the configuration in use; -1 for none', gauges.appliedEpoch)
}
