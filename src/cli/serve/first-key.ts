/**
 * Hands the first API key to whoever started Inlet.
 *
 * Law: a key is printed only to a terminal. Other output is kept by service managers and log collectors, which many people read.
 */
import { systemFiles, writeDurably } from '#lib/files.ts'
import type { LogFormat } from './open-log.ts'

/** `path` is the file that has the key, if it was not for a terminal. */
export type FirstKey = { readonly key: string; readonly path?: undefined } | { readonly path: string; readonly key?: undefined }

/** Writes the key to a file that only the user of Inlet can read, unless it can be printed. */
export async function keepFirstKey(key: string, path: string, isTerminal: boolean): Promise<FirstKey> {
  if (isTerminal) return { key }
  await writeDurably(systemFiles, path, Buffer.from(`${key}\n`))
  return { path }
}

/** Returns what to print where no banner says it. */
export function formatFirstKey({ key, path }: FirstKey, format: LogFormat): string {
  const message = key === undefined ? 'The first API key is in this file' : 'The first API key, which is not shown again'
  if (format === 'json') return JSON.stringify(key === undefined ? { message, api_key_file: path } : { message, api_key: key })
  return `${message}: ${key ?? path}`
}
