/** Metrics of the node as a whole. Each protocol registers its own beside them. */
import type { Registry } from 'prom-client'
import type { Durations } from '#lib/durations.ts'
import { observableMetrics } from '#lib/metrics.ts'
import { residentMemoryOf } from '#lib/resident-memory.ts'
import type { LogWriter } from '#log/log-writer.ts'
import type { ConnectionBudget } from '../gate/connection-budget.ts'

export type NodeReadings = {
  readonly connections: ConnectionBudget
  readonly inFlightBytes: () => number
  /** By protocol. */
  readonly acknowledgements: Readonly<Record<string, Durations>>
  readonly log: Pick<LogWriter, 'usage'>
  /** How many bytes the WAL may have. */
  readonly diskBudgetBytes: number
  readonly diskFreeBytes: () => number
  readonly idempotencyKeys: () => number
  readonly idempotencyIndexBytes: () => number
  readonly idempotencyKeysDamaged: () => number
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
  const { connections, inFlightBytes, refusals, poolsUsed, largestAccounts } = readings
  const { counter, counters, gauge, gauges, histograms } = observableMetrics(registry)
  histograms(
    'inlet_ingest_ack_seconds',
    'time from the complete arrival of a request or message until it is durable and acknowledged, by protocol',
    'protocol',
    () => Object.entries(readings.acknowledgements),
  )
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
  registerLogMetrics(registry, readings)
  gauge('inlet_ingest_idempotency_keys', 'idempotency keys that the node remembers', readings.idempotencyKeys)
  gauge('inlet_ingest_idempotency_index_bytes', 'memory that finds these keys', readings.idempotencyIndexBytes)
  gauge(
    'inlet_ingest_idempotency_keys_damaged',
    'idempotency keys that are damaged, or gone with their file: a request that is repeated with one is stored again',
    readings.idempotencyKeysDamaged,
  )
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
      'account_id',
      largestAccounts,
    )
  gauge('inlet_applied_epoch', 'epoch of the configuration in use; -1 for none', readings.appliedEpoch)
  gauge(
    'inlet_control_contact_age_seconds',
    'seconds for which changes of the configuration may have been missed',
    () => readings.controlContactAgeMs() / 1000,
  )
}

function registerLogMetrics(registry: Registry, { log, diskBudgetBytes, diskFreeBytes }: NodeReadings): void {
  const { counter, gauge, histogram } = observableMetrics(registry)
  histogram(
    'inlet_wal_fsync_seconds',
    'duration of each fdatasync of the write-ahead log, one for a group of records',
    log.usage.syncs,
  )
  gauge('inlet_wal_disk_bytes', 'bytes of WAL segments on disk, open and sealed: what is not delivered', () => log.usage.bytes)
  gauge('inlet_wal_disk_budget_bytes', 'bytes that the WAL may have on disk; above them the node refuses data', () => {
    return diskBudgetBytes
  })
  gauge('inlet_wal_disk_free_bytes', 'free bytes of the file system of the WAL', diskFreeBytes)
  gauge('inlet_wal_open_bytes', 'bytes of WAL segments that are still written to', () => log.usage.openBytes)
  gauge(
    'inlet_wal_oldest_open_seconds',
    'age of the oldest WAL segment that is still written to; 0 if there is none',
    () => log.usage.oldestOpenMs / 1000,
  )
  gauge('inlet_wal_waiting_bytes', 'bytes of frames in memory that are not on the disk yet', () => log.usage.waitingBytes)
  counter(
    'inlet_wal_rescued_segments_total',
    'segments written again because somebody removed their file',
    () => log.usage.salvagedSegments,
  )
  counter(
    'inlet_wal_damaged_segments_total',
    'unsealed segments that a recovery found damaged, cut or missing, with a loss',
    () => log.usage.lost.segments,
  )
  counter(
    'inlet_wal_lost_records_total',
    'acknowledged records that are lost with these segments: at least so many',
    () => log.usage.lost.records,
  )
}
