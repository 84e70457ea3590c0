import { destination, type Logger, pino } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'

export type { Logger } from 'pino'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** One JSON line per event on standard error. Keys, tokens and authorization headers never reach it. */
export function createLogger(process: string, level: LogLevel): Logger {
  return pino(
    {
      level,
      base: { process },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: ['*.authorization', '*["x-api-key"]', '*.password', '*.api_key', '*.access_token', '*.token', 'token', 'api_key'],
        censor: '[redacted]',
      },
    },
    destination({ dest: 2, sync: true }),
  )
}

/** A registry of this process's own, with Node's metrics in it. */
export function createMetrics(process: string): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
  return registry
}

/** Metrics that are read when somebody asks, so that what they count is counted in plain numbers. */
export function readings(registry: Registry) {
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
    /** One series for each value of the label. */
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
