import { destination, type Logger, pino } from 'pino'
import { collectDefaultMetrics, Registry } from 'prom-client'

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
