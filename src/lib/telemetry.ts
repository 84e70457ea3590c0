import { type DestinationStream, destination, type Logger as PinoLogger, pino } from 'pino'
import { MiB } from './bytes.ts'
import { formatLine, paintFor, type Sentences } from './text-lines.ts'

/** `notice` is for what a person at a terminal wants to see of a healthy service: a commit, the end of an outage. */
export type Logger = PinoLogger<'notice'>

const waitingLogBytesMax = 4 * MiB

export type LogLevel = 'debug' | 'info' | 'notice' | 'warn' | 'error' | 'silent'

/**
 * Writes one line per event to standard error: JSON, or text for people if there are sentences. Keys, tokens and authorization headers are
 * redacted. The level is `info` if null.
 */
export function createLogger(
  name: string,
  level: LogLevel | null,
  sentences?: Sentences,
  lines: DestinationStream = stderrLines(),
): Logger {
  return pino(
    {
      level: level ?? 'info',
      customLevels: { notice: 35 },
      base: { process: name },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: ['*.authorization', '*["x-api-key"]', '*.password', '*.api_key', '*.access_token', '*.token', 'token', 'api_key'],
        censor: '[redacted]',
      },
    },
    sentences === undefined ? lines : asText(lines, sentences),
  )
}

function asText(lines: DestinationStream, sentences: Sentences): DestinationStream {
  const { stderr } = process
  const paint = paintFor(stderr)
  return {
    write(json) {
      // A terminal without a size has 0 columns.
      const columns = (stderr.isTTY && stderr.columns) || Number.POSITIVE_INFINITY
      lines.write(formatLine(json, { sentences, paint, columns }))
    },
  }
}

/** Lines that cannot be written (a full disk, a reader that is gone) wait for the next one. Beyond the bound they are dropped. */
function stderrLines() {
  const lines = destination({ dest: 2, sync: true, maxLength: waitingLogBytesMax })
  // Without a listener the first such line would end the process.
  lines.on('error', () => undefined)
  return lines
}
