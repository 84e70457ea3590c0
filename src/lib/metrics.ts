import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Clock } from './clock.ts'
import { EventLoopDelay } from './event-loop-delay.ts'

/** Creates a registry with metrics of the process: Node's own, and how long its event loop is held. */
export function createMetrics(process: string, clock: Clock): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
  const delay = new EventLoopDelay(clock)
  observableMetrics(registry).gauge(
    'inlet_event_loop_delay_max_seconds',
    'longest time in the last one to two minutes for which the event loop was held',
    () => delay.longestMs / 1000,
  )
  return registry
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
