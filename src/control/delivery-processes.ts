import type { Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { observableMetrics } from '#lib/metrics.ts'
import type { Heartbeat, ProcessMemory } from '#model/node-protocol.ts'
import { nodeFailedSeconds } from './limits.ts'

type Report = { readonly delayMs: number; readonly memory: ProcessMemory | undefined; readonly at: number }

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

/** Exports what delivery processes, which have no listener of their own, say about themselves. From heartbeats to this process. */
export class DeliveryProcesses {
  readonly #clock: Clock
  readonly #nodes = new Map<string, Report>()

  constructor(registry: Registry, clock: Clock) {
    this.#clock = clock
    const { gauge, gauges } = observableMetrics(registry)
    gauge(
      'inlet_delivery_event_loop_delay_max_seconds',
      'longest time in the last one to two minutes for which the event loop of a delivery process was held',
      () => Math.max(0, ...this.#reports().map(([, { delayMs }]) => delayMs)) / 1000,
    )
    for (const [name, field, help] of parts)
      gauges(`inlet_delivery_${name}`, help, 'node', () =>
        this.#reports().flatMap(([node, { memory }]) => (memory === undefined ? [] : [[node, memory[field]] as const])),
      )
  }

  report(heartbeat: Heartbeat): void {
    if (heartbeat.process !== 'delivery') return
    const { node_id, event_loop_delay_ms: delayMs = 0, memory } = heartbeat
    this.#nodes.set(node_id, { delayMs, memory, at: this.#clock.monotonic() })
  }

  /** Returns the last reports of nodes that run. */
  #reports(): readonly (readonly [string, Report])[] {
    const since = this.#clock.monotonic() - nodeFailedSeconds * 1000
    for (const [node, { at }] of this.#nodes) if (at < since) this.#nodes.delete(node)
    return [...this.#nodes]
  }
}
