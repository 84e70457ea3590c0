import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client'
import type { Clock } from './clock.ts'
import type { Durations } from './durations.ts'
import { EventLoopDelay } from './event-loop-delay.ts'
import { residentBytesOf, residentMemoryOf } from './resident-memory.ts'

/** Sums of prom-client that are gauges with the name of a counter. Each is the sum of the metric without `_total`. */
const misnamed = ['nodejs_active_resources_total', 'nodejs_active_handles_total', 'nodejs_active_requests_total']

/** Creates a registry with metrics of the process: its version, Node's own, its memory, and how long its event loop is held. */
export function createMetrics(process: string, version: string, clock: Clock): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
  for (const name of misnamed) registry.removeSingleMetric(name)
  const delay = new EventLoopDelay(clock)
  const { gauge, gauges } = observableMetrics(registry)
  gauges('inlet_build_info', 'version of this Inlet; the value is always 1', 'version', () => [[version, 1]])
  gauge(
    'inlet_event_loop_delay_max_seconds',
    'longest time in the last one to two minutes for which the event loop was held',
    () => delay.longestMs / 1000,
  )
  gauge(
    'inlet_array_buffers_bytes',
    'bytes of Buffers and other array buffers, a part of nodejs_external_memory_bytes',
    () => globalThis.process.memoryUsage().arrayBuffers,
  )
  gauge(
    'inlet_resident_memory_peak_bytes',
    'largest resident memory of this process so far',
    () => residentMemoryOf(globalThis.process.pid)?.peakBytes ?? 0,
  )
  return registry
}

/** Registers the memory of processes that this one started, by what they do. */
export function registerWorkerMetrics(registry: Registry, pids: Readonly<Record<string, () => readonly number[]>>): void {
  const { gauges } = observableMetrics(registry)
  const kinds = Object.entries(pids)
  gauges('inlet_workers', 'processes that this one started, idle ones included', 'kind', () =>
    kinds.map(([kind, running]) => [kind, running().length] as const),
  )
  gauges('inlet_workers_resident_memory_bytes', 'resident memory of these processes together', 'kind', () =>
    kinds.map(([kind, running]) => [kind, residentBytesOf(running())] as const),
  )
}

/** Registers how long the certificates of listeners are valid, by listener. Those without TLS are left out. */
export function registerTlsMetrics(
  registry: Registry,
  certificates: Readonly<Record<string, { readonly expiresAtMs: number | undefined } | undefined>>,
  clock: Clock,
): void {
  observableMetrics(registry).gauges(
    'inlet_tls_certificate_remaining_seconds',
    'seconds until the certificate that a listener serves ends; negative if it has ended',
    'listener',
    () =>
      Object.entries(certificates).flatMap(([listener, certificate]) => {
        const at = certificate?.expiresAtMs
        return at === undefined ? [] : [[listener, (at - clock.now()) / 1000] as const]
      }),
  )
}

type LabelledValues = Iterable<readonly [string, number]>

/** Metrics whose values are read at each scrape, so that the code that counts uses plain numbers. */
export function observableMetrics(registry: Registry) {
  const registers = [registry]
  return {
    counter(name: string, help: string, read: () => number): void {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset()
          this.inc(read())
        },
      })
    },
    /** One series per value of the label. */
    counters(name: string, help: string, label: string, read: () => Iterable<readonly [string | number, number]>): void {
      new Counter({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          this.reset()
          for (const [value, count] of read()) this.inc({ [label]: value }, count)
        },
      })
    },
    /** One series per value of the label. Values that are no longer read are no longer shown. */
    gauges(name: string, help: string, label: string, read: () => LabelledValues | Promise<LabelledValues>): void {
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        async collect() {
          const values = await read()
          this.reset()
          for (const [value, count] of values) this.set({ [label]: value }, count)
        },
      })
    },
    /** One histogram per value of the label. */
    histograms(name: string, help: string, label: string, read: () => Iterable<readonly [string, Durations]>): void {
      const get = async () => ({
        ...{ name, help, type: 'histogram' },
        values: [...read()].flatMap(([value, durations]) => histogramValues(name, { [label]: value }, durations)),
      })
      registry.registerMetric({ name, get } as unknown as Metric)
    },
    histogram(name: string, help: string, durations: Durations): void {
      const get = async () => ({ ...{ name, help, type: 'histogram' }, values: histogramValues(name, {}, durations) })
      registry.registerMetric({ name, get } as unknown as Metric)
    },
    gauge(name: string, help: string, read: () => number): void {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read())
        },
      })
    },
  }
}

type Value = { readonly metricName: string; readonly labels: Readonly<Record<string, string | number>>; readonly value: number }

function histogramValues(name: string, labels: Readonly<Record<string, string>>, durations: Durations): Value[] {
  const { bounds, count, sumSeconds } = durations
  const bucket = (le: string | number, value: number) => ({ metricName: `${name}_bucket`, labels: { le, ...labels }, value })
  const cumulative = durations.cumulative()
  return [
    ...bounds.map((le, index) => bucket(le, cumulative[index] ?? 0)),
    bucket('+Inf', count),
    { metricName: `${name}_sum`, labels, value: sumSeconds },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
