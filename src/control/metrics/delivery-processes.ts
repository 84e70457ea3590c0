import type { Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { observableMetrics } from '#lib/metrics.ts'
import type { Heartbeat, ProcessMemory, ScrubReport } from '#model/node-protocol.ts'
import { nodeFailedSeconds } from '../limits.ts'

type DeliveryHeartbeat = Extract<Heartbeat, { process: 'delivery' }>
type Report = { readonly heartbeat: DeliveryHeartbeat; readonly at: number }

/** Metrics of memory, one series for each node. */
const parts = [
  ['resident_memory_bytes', 'resident_bytes', 'resident memory of a delivery process, without its workers'],
  ['resident_memory_peak_bytes', 'resident_peak_bytes', 'largest resident memory of a delivery process so far'],
  ['heap_size_used_bytes', 'heap_used_bytes', 'heap of V8 in use'],
  ['heap_size_total_bytes', 'heap_total_bytes', 'heap of V8, free parts included'],
  ['external_memory_bytes', 'external_bytes', 'memory that belongs to objects of V8 but is outside its heap'],
  ['array_buffers_bytes', 'array_buffers_bytes', 'bytes of Buffers and other array buffers, a part of external memory'],
  ['workers', 'workers', 'conversion processes, idle ones included'],
  ['workers_resident_memory_bytes', 'workers_resident_bytes', 'resident memory of the conversion processes of a node together'],
] as const satisfies readonly (readonly [string, keyof ProcessMemory, string])[]

/** How long the event loop was held in the last one to two minutes. */
const delays = [
  ['p50', 'event_loop_delay_p50_ms', 'median time for which the event loop of a delivery process was held, of the last minutes'],
  ['p99', 'event_loop_delay_p99_ms', '99th percentile of the times for which the event loop of a delivery process was held'],
  [
    'max',
    'event_loop_delay_ms',
    'longest time in the last one to two minutes for which the event loop of a delivery process was held',
  ],
] as const satisfies readonly (readonly [string, keyof Extract<Heartbeat, { process: 'delivery' }>, string])[]

const scrubs = [
  ['findings', 'findings', 'damage that the scrub of a node knows of, on its disk or in buckets'],
  ['files', 'files', 'delivered files that the last completed pass of the scrub verified'],
  ['read_bytes', 'read_bytes', 'bytes that it read and compared with their checksums'],
] as const satisfies readonly (readonly [string, keyof ScrubReport, string])[]

/** Exports what delivery processes, which have no listener of their own, say about themselves. From heartbeats to this process. */
export class DeliveryProcesses {
  readonly #clock: Clock
  readonly #nodes = new Map<string, Report>()

  constructor(registry: Registry, clock: Clock) {
    this.#clock = clock
    const { counters, gauges } = observableMetrics(registry)
    const byNode = (read: (heartbeat: DeliveryHeartbeat) => number | undefined) => () =>
      this.#reports().flatMap(([node, { heartbeat }]) => {
        const value = read(heartbeat)
        return value === undefined ? [] : [[node, value] as const]
      })
    for (const [name, field, help] of delays)
      gauges(
        `inlet_delivery_event_loop_delay_${name}_seconds`,
        help,
        'node_id',
        byNode(({ [field]: ms }) => ms && ms / 1000),
      )
    counters(
      'inlet_delivery_cpu_seconds_total',
      'processor time of a delivery process, user and system, without its workers',
      'node_id',
      byNode(({ cpu_seconds }) => cpu_seconds),
    )
    gauges(
      'inlet_delivery_outbox_commits',
      'commits of a node that control has not recorded, or whose segment is not removed yet',
      'node_id',
      byNode(({ outbox }) => outbox?.commits),
    )
    gauges(
      'inlet_delivery_outbox_oldest_seconds',
      'how long the oldest of these commits has waited, since the start of the delivery process at most',
      'node_id',
      byNode(({ outbox }) => outbox?.oldest_seconds),
    )
    for (const [name, field, help] of scrubs)
      gauges(
        `inlet_delivery_scrub_${name}`,
        help,
        'node_id',
        byNode(({ scrub }) => scrub?.[field]),
      )
    gauges(
      'inlet_delivery_scrub_completed_timestamp_seconds',
      'when the scrub of a node last completed a pass',
      'node_id',
      byNode(({ scrub }) => (scrub?.completed_at == null ? undefined : Date.parse(scrub.completed_at) / 1000)),
    )
    for (const [name, field, help] of parts)
      gauges(
        `inlet_delivery_${name}`,
        help,
        'node_id',
        byNode(({ memory }) => memory?.[field]),
      )
  }

  report(heartbeat: Heartbeat): void {
    if (heartbeat.process !== 'delivery') return
    const { lag, lag_gone, ...small } = heartbeat
    this.#nodes.set(heartbeat.node_id, { heartbeat: { ...small, lag: [] }, at: this.#clock.monotonic() })
  }

  /** Returns the last reports of nodes that run. */
  #reports(): readonly (readonly [string, Report])[] {
    const since = this.#clock.monotonic() - nodeFailedSeconds * 1000
    for (const [node, { at }] of this.#nodes) if (at < since) this.#nodes.delete(node)
    return [...this.#nodes]
  }
}
