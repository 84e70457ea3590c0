import { Gauge, type Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { type LagTotals, listLargestLags, sumLags } from '#store/nodes/lag-totals.ts'
import type { Store } from '#store/store.ts'
import { controlLimits } from '../limits.ts'

export type LagMetricsOptions = {
  readonly store: Store
  readonly clock: Clock
  /** Whether to export metrics per endpoint: their readers must be allowed to see all accounts. */
  readonly byEndpoint: boolean
}

const values = [
  ['open_segments', 'segments that are still written to'],
  ['undelivered_segments', 'sealed segments that are not committed, parked ones included'],
  ['blocked_logs', 'logs whose delivery waits for something that fails, by a failing view or otherwise'],
  ['parked_segments', 'sealed segments that cannot be converted'],
  ['logs_held_by_views', 'logs that a failing required view holds back'],
  ['quarantined_segments', 'damaged files that were kept'],
  ['unowned_segments', 'segments of any kind whose endpoint is gone'],
  ['undelivered_bytes', 'bytes of segments that are not committed, open ones included'],
  ['scrub_findings', 'damage on nodes or in buckets that the last scrub still found'],
  ['oldest_undelivered_seconds', 'seconds since the oldest uncommitted segment was sealed'],
] as const

/** Registers the delivery lag of all endpoints, as last reported by the nodes. Read on each scrape. */
export function registerLagMetrics(registry: Registry, { store, clock, byEndpoint }: LagMetricsOptions): void {
  const registers = [registry]
  // All gauges of one scrape share one database query.
  const sumNow = shareRunning(() => sumLags(store.db))
  const largestNow = shareRunning(() => listLargestLags(store.db, controlLimits.lagsShown))
  const measured = (lag: LagTotals, name: (typeof values)[number][0]): number => {
    if (name !== 'oldest_undelivered_seconds') return lag[name]
    return lag.oldest_sealed_at === null ? 0 : Math.max(0, clock.now() - lag.oldest_sealed_at) / 1000
  }
  for (const [name, help] of values) {
    new Gauge({
      name: `inlet_${name}`,
      help,
      registers,
      async collect() {
        this.set(measured(await sumNow(), name))
      },
    })
    if (!byEndpoint) continue
    new Gauge({
      name: `inlet_endpoint_${name}`,
      help: `${help}, of one endpoint on one node; those with the most bytes`,
      labelNames: ['endpoint_id', 'node_id'],
      registers,
      async collect() {
        this.reset()
        for (const lag of await largestNow())
          this.set({ endpoint_id: lag.endpoint_id, node_id: lag.node_id }, measured(lag, name))
      },
    })
  }
}

/** Returns a function whose callers share the run in progress. */
function shareRunning<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
}
