/** Metrics of the node as a whole. Each protocol registers its own beside them. */
import type { Registry } from 'prom-client'
import { observableMetrics } from '#lib/metrics.ts'
import type { ConnectionBudget } from './connection-budget.ts'

export type NodeReadings = {
  readonly connections: ConnectionBudget
  readonly inFlightBytes: () => number
  readonly walBytesOnDisk: () => number
  readonly rescuedSegments: () => number
  readonly appliedEpoch: () => number
}

export function registerNodeMetrics(
  registry: Registry,
  { connections, inFlightBytes, walBytesOnDisk, rescuedSegments, appliedEpoch }: NodeReadings,
): void {
  const { counter, gauge } = observableMetrics(registry)
  counter('inlet_ingest_dropped_connections_total', 'connections closed because there were too many', () => connections.dropped)
  gauge('inlet_ingest_connections', 'open connections', () => connections.open)
  gauge('inlet_ingest_in_flight_bytes', 'request bytes held in memory', inFlightBytes)
  gauge('inlet_wal_bytes_on_disk', 'bytes of WAL segments on disk', walBytesOnDisk)
  counter('inlet_wal_rescued_segments_total', 'segments written again because somebody removed their file', rescuedSegments)
  gauge('inlet_applied_epoch', 'epoch of the configuration in use; -1 for none', appliedEpoch)
}
