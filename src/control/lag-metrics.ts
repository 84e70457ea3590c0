import { Gauge, type Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { countSegments, type EndpointLag } from '#model/node-protocol.ts'

/** A row of a node. Without `is_owned`, its endpoint was deleted or is not known. */
type Lag = EndpointLag & { readonly node_id: string; readonly is_owned: boolean }

export type LagMetricsOptions = {
  readonly readLags: () => Promise<readonly Lag[]>
  readonly clock: Clock
  /** Whether to export metrics per endpoint: their readers must be allowed to see all accounts. */
  readonly byEndpoint: boolean
}

/** Registers the delivery lag of all endpoints, as last reported by the nodes. Read on each scrape. */
export function registerLagMetrics(registry: Registry, { readLags, clock, byEndpoint }: LagMetricsOptions): void {
  const registers = [registry]
  // All gauges of one scrape share one database query.
  let reading: Promise<readonly Lag[]> | undefined
  const lagsNow = (): Promise<readonly Lag[]> => {
    reading ??= readLags().finally(() => {
      reading = undefined
    })
    return reading
  }
  const ageSeconds = ({ oldest_sealed_at }: Lag): number =>
    oldest_sealed_at === null ? 0 : Math.max(0, clock.now() - Date.parse(oldest_sealed_at)) / 1000
  const values = [
    ['open_segments', 'segments that are still written to', (lag: Lag) => lag.open_segments, sum],
    [
      'undelivered_segments',
      'sealed segments that are not committed, parked ones included',
      (lag: Lag) => lag.undelivered_segments + lag.parked_segments,
      sum,
    ],
    ['parked_segments', 'sealed segments that cannot be converted', (lag: Lag) => lag.parked_segments, sum],
    [
      'logs_held_by_views',
      'logs that a failing required view holds back',
      (lag: Lag) => (lag.failing_view === null ? 0 : 1),
      sum,
    ],
    ['quarantined_segments', 'damaged files that were kept', (lag: Lag) => lag.quarantined_segments, sum],
    [
      'unowned_segments',
      'segments of any kind whose endpoint is gone',
      (lag: Lag) => (lag.is_owned ? 0 : countSegments(lag)),
      sum,
    ],
    [
      'undelivered_bytes',
      'bytes of segments that are not committed, open ones included',
      (lag: Lag) => lag.undelivered_bytes,
      sum,
    ],
    ['oldest_undelivered_seconds', 'seconds since the oldest uncommitted segment was sealed', ageSeconds, max],
  ] as const
  for (const [name, help, read, combine] of values) {
    new Gauge({
      name: `inlet_${name}`,
      help,
      registers,
      async collect() {
        this.set(combine((await lagsNow()).map(read)))
      },
    })
    if (!byEndpoint) continue
    new Gauge({
      name: `inlet_endpoint_${name}`,
      help: `${help}, of one endpoint on one node`,
      labelNames: ['endpoint_id', 'node_id'],
      registers,
      async collect() {
        this.reset()
        for (const lag of await lagsNow()) this.set({ endpoint_id: lag.endpoint_id, node_id: lag.node_id }, read(lag))
      },
    })
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function max(values: readonly number[]): number {
  return Math.max(0, ...values)
}
