/**
 * A public key in the query: `navigator.sendBeacon` can set no header.
 *
 * Owns: where it is found, and the Content-Type that browsers give a beacon. Does not own: whether the key may be there (authenticator.ts).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { AppError } from '#errors.ts'
import { type BodyFormat, bodyFormat } from './body/body-format.ts'

export type UrlKey = { readonly key: string | undefined; readonly query: string }

/** Takes the key out of the query. Throws AppError bad_request if there are several. */
export function takeUrlKey(query: string): UrlKey {
  if (!query.includes('key')) return { key: undefined, query }
  const parameters = new URLSearchParams(query)
  const [key, ...more] = parameters.getAll('key')
  if (key === undefined) return { key, query }
  if (more.length > 0) throw new AppError('bad_request', 'the query has several keys; send one')
  parameters.delete('key')
  return { key, query: parameters.toString() }
}

/** Reads `text/plain`, the type of a beacon with a string, as JSON: a record, an array of them, or one on each line. */
export function beaconFormat(headers: IncomingHttpHeaders): BodyFormat {
  const type = headers['content-type'] ?? ''
  if (!/^text\/plain *(;|$)/i.test(type)) return bodyFormat(headers)
  return bodyFormat({ ...headers, 'content-type': type.replace(/^text\/plain/i, 'application/json') })
}
