/**
 * Hands the first API key and the first link into the console to whoever started Inlet.
 *
 * Law: a secret is printed only to a terminal. Other output is kept by service managers and log collectors, which many people read.
 */
import { systemFiles, writeDurably } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LogFormat } from './open-log.ts'

/** `path` is the file that has the key, if it was not for a terminal. */
export type FirstKey = { readonly key: string; readonly path?: undefined } | { readonly path: string; readonly key?: undefined }

export type KeepOptions = { readonly path: string; readonly isTerminal: boolean; readonly logger: Logger }

/** The one-time link into the console, or the file that has it. */
export type FirstLink = { readonly url: string; readonly path?: undefined } | { readonly path: string; readonly url?: undefined }

/** Writes the key to a file that only the user of Inlet can read, unless it can be printed. Returns undefined if there is no key to hand out. */
export async function keepFirstKey(key: string | null | undefined, options: KeepOptions): Promise<FirstKey | undefined> {
  if (typeof key !== 'string') return undefined
  if (options.isTerminal) return { key }
  return keep(key, options, { secret: 'first API key', remedy: 'inlet keys create' })
}

/** As `keepFirstKey`, for the link. */
export async function keepFirstLink(url: string | undefined, options: KeepOptions): Promise<FirstLink | undefined> {
  if (url === undefined) return undefined
  if (options.isTerminal) return { url }
  return keep(url, options, { secret: 'sign-in link', remedy: 'inlet sign-in-link' })
}

async function keep(
  secret: string,
  { path, logger }: KeepOptions,
  named: { readonly secret: string; readonly remedy: string },
): Promise<{ readonly path: string } | undefined> {
  try {
    await writeDurably(systemFiles, path, Buffer.from(`${secret}\n`))
    return { path }
  } catch (error) {
    logger.error({ err: error, remedy: named.remedy }, `${named.secret} could not be written to a file`)
    return undefined
  }
}

/** Returns what to print where no banner says it. */
export function formatFirstKey({ key, path }: FirstKey, format: LogFormat): string {
  const message = key === undefined ? 'The first API key is in this file' : 'The first API key, which is not shown again'
  if (format === 'json') return JSON.stringify(key === undefined ? { message, api_key_file: path } : { message, api_key: key })
  return `${message}: ${key ?? path}`
}

export function formatFirstLink({ url, path }: FirstLink, format: LogFormat): string {
  const message =
    url === undefined ? 'This file has a link that signs you in to the console' : 'A link that signs you in to the console'
  if (format === 'json')
    return JSON.stringify(url === undefined ? { message, sign_in_link_file: path } : { message, sign_in_link: url })
  return `${message}: ${url ?? path}`
}
