import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** Creates a registry with Node's own metrics. */
export function createMetrics(process: string): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
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
