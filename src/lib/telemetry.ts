import { destination, type Logger, pino } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { MiB } from './bytes.ts'

export type { Logger } from 'pino'

const waitingLogBytesMax = 4 * MiB

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Writes one line of JSON per event to standard error. Keys, tokens and authorization headers are redacted. */
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
    stderrLines(),
  )
}

/** Lines that cannot be written (a full disk, a reader that is gone) wait for the next one. Beyond the bound they are dropped. */
function stderrLines() {
  const lines = destination({ dest: 2, sync: true, maxLength: waitingLogBytesMax })
  // Without a listener the first such line would end the process.
  lines.on('error', () => undefined)
  return lines
}

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
