/** Metrics of the node as a whole. Each protocol registers its own beside them. */
import type { Registry } from 'prom-client'
import { observableMetrics } from '#lib/metrics.ts'
import { residentMemoryOf } from '#lib/resident-memory.ts'
import type { ConnectionBudget } from './connection-budget.ts'

export type NodeReadings = {
  readonly connections: ConnectionBudget
  readonly inFlightBytes: () => number
  readonly walBytesOnDisk: () => number
  readonly walWaitingBytes: () => number
  readonly rescuedSegments: () => number
  readonly idempotencyKeys: () => number
  readonly idempotencyIndexBytes: () => number
  /** Undefined if no supervisor started this process. */
  readonly supervisorPid: number | undefined
  readonly appliedEpoch: () => number
  readonly controlContactAgeMs: () => number
  readonly quotaRefusals: ReadonlyMap<string, number>
  /** By resource and bound, as in `Admission.refusals`. */
  readonly refusals: () => Iterable<readonly [string, number]>
  /** Part of the pool of each resource that is in use, from 0 to 1. */
  readonly poolsUsed: () => Iterable<readonly [string, number]>
  /** The accounts with most bytes in the WAL; undefined to leave them out. */
  readonly largestAccounts: (() => Iterable<readonly [string, number]>) | undefined
}

export function registerNodeMetrics(registry: Registry, readings: NodeReadings): void {
  const { connections, inFlightBytes, walBytesOnDisk, rescuedSegments, refusals, poolsUsed, largestAccounts } = readings
  const { counter, counters, gauge, gauges } = observableMetrics(registry)
  counter('inlet_ingest_dropped_connections_total', 'connections closed because there were too many', () => connections.dropped)
  counters(
    'inlet_ingest_quota_refusals_total',
    'requests, messages and connections refused because a quota of their account is used up',
    'quota',
    () => readings.quotaRefusals,
  )
  gauge('inlet_ingest_connections', 'open connections', () => connections.open)
  gauge(
    'inlet_ingest_unauthenticated_connections',
    'open connections without an authenticated request so far',
    () => connections.unauthenticated,
  )
  gauge('inlet_ingest_in_flight_bytes', 'request bytes held in memory', inFlightBytes)
  gauge('inlet_wal_bytes_on_disk', 'bytes of WAL segments on disk', walBytesOnDisk)
  gauge('inlet_wal_waiting_bytes', 'bytes of frames in memory that are not on the disk yet', readings.walWaitingBytes)
  counter('inlet_wal_rescued_segments_total', 'segments written again because somebody removed their file', rescuedSegments)
  gauge('inlet_ingest_idempotency_keys', 'idempotency keys that the node remembers', readings.idempotencyKeys)
  gauge('inlet_ingest_idempotency_index_bytes', 'memory that finds these keys', readings.idempotencyIndexBytes)
  const { supervisorPid } = readings
  if (supervisorPid !== undefined)
    gauge(
      'inlet_supervisor_resident_memory_bytes',
      'resident memory of the process that started this one',
      () => residentMemoryOf(supervisorPid)?.bytes ?? 0,
    )
  counters('inlet_ingest_refusals_total', 'data refused for want of room, by resource and whose share it was', 'bound', refusals)
  gauges('inlet_ingest_pool_used_ratio', 'use of what is guaranteed to no account, 0 to 1', 'resource', poolsUsed)
  if (largestAccounts !== undefined)
    gauges(
      'inlet_ingest_account_wal_bytes',
      'bytes on disk and in flight of the accounts that have most',
      'account',
      largestAccounts,
    )
  gauge('inlet_applied_epoch', 'epoch of the configuration in use; -1 for none', readings.appliedEpoch)
  gauge(
    'inlet_control_contact_age_seconds',
    'seconds for which changes of the configuration may have been missed',
    () => readings.controlContactAgeMs() / 1000,
  )
}
