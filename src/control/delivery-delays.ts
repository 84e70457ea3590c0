import type { Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { observableMetrics } from '#lib/metrics.ts'
import type { Heartbeat } from '#model/node-protocol.ts'
import { nodeFailedSeconds } from './limits.ts'

/** Exports how long delivery processes, which have no listener of their own, were held. From heartbeats to this process. */
export class DeliveryDelays {
  readonly #clock: Clock
  readonly #nodes = new Map<string, { readonly ms: number; readonly at: number }>()

  constructor(registry: Registry, clock: Clock) {
    this.#clock = clock
    observableMetrics(registry).gauge(
      'inlet_delivery_event_loop_delay_max_seconds',
      'longest time in the last one to two minutes for which the event loop of a delivery process was held',
      () => this.#longestMs() / 1000,
    )
  }

  report(heartbeat: Heartbeat): void {
    if (heartbeat.process !== 'delivery' || heartbeat.event_loop_delay_ms === undefined) return
    this.#nodes.set(heartbeat.node_id, { ms: heartbeat.event_loop_delay_ms, at: this.#clock.monotonic() })
  }

  #longestMs(): number {
    const since = this.#clock.monotonic() - nodeFailedSeconds * 1000
    for (const [node, { at }] of this.#nodes) if (at < since) this.#nodes.delete(node)
    return Math.max(0, ...[...this.#nodes.values()].map(({ ms }) => ms))
  }
}
