import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Clock } from './clock.ts'
import { EventLoopDelay } from './event-loop-delay.ts'
import { residentBytesOf, residentMemoryOf } from './resident-memory.ts'

/** Creates a registry with metrics of the process: Node's own, its memory, and how long its event loop is held. */
export function createMetrics(process: string, clock: Clock): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
  const delay = new EventLoopDelay(clock)
  const { gauge } = observableMetrics(registry)
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
    gauges(name: string, help: string, label: string, read: () => Iterable<readonly [string, number]>): void {
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          this.reset()
          for (const [value, count] of read()) this.set({ [label]: value }, count)
        },
      })
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
