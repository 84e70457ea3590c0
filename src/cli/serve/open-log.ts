import { isatty } from 'node:tty'
import type { Config } from '#config/config.ts'
import { createLogger, type Logger } from '#lib/telemetry.ts'
import { sentences } from './sentences.ts'

export type LogFormat = 'text' | 'json'

/** Returns `text` if a person is watching. */
export function logFormatOf({ logFormat }: Config): LogFormat {
  return logFormat ?? (isatty(1) && isatty(2) ? 'text' : 'json')
}

/**
 * Opens the log of a process: text if a person is watching, otherwise JSON. `isSummarized`: a banner says what the process serves, so its
 * start needs no lines.
 */
export function openLog(name: string, config: Config, isSummarized: boolean): Logger {
  const { logLevel } = config
  if (logFormatOf(config) === 'json') return createLogger(name, logLevel)
  return createLogger(name, logLevel ?? (isSummarized ? 'notice' : null), sentences)
}
