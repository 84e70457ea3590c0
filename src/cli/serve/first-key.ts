/**
 * Hands the first API key to whoever started Inlet.
 *
 * Law: a key is printed only to a terminal. Other output is kept by service managers and log collectors, which many people read.
 */
import { systemFiles, writeDurably } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LogFormat } from './open-log.ts'

/** `path` is the file that has the key, if it was not for a terminal. */
export type FirstKey = { readonly key: string; readonly path?: undefined } | { readonly path: string; readonly key?: undefined }

export type KeepOptions = { readonly path: string; readonly isTerminal: boolean; readonly logger: Logger }

/** Writes the key to a file that only the user of Inlet can read, unless it can be printed. Returns undefined if there is no key to hand out. */
export async function keepFirstKey(
  key: string | null | undefined,
  { path, isTerminal, logger }: KeepOptions,
): Promise<FirstKey | undefined> {
  if (typeof key !== 'string') return undefined
  if (isTerminal) return { key }
  try {
    await writeDurably(systemFiles, path, Buffer.from(`${key}\n`))
    return { path }
  } catch (error) {
    logger.error({ err: error, remedy: 'inlet keys create' }, 'first API key could not be written to a file')
    return undefined
  }
}

/** Returns what to print where no banner says it. */
export function formatFirstKey({ key, path }: FirstKey, format: LogFormat): string {
  const message = key === undefined ? 'The first API key is in this file' : 'The first API key, which is not shown again'
  if (format === 'json') return JSON.stringify(key === undefined ? { message, api_key_file: path } : { message, api_key: key })
  return `${message}: ${key ?? path}`
}
