import { destination, type Logger, pino } from 'pino'
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
