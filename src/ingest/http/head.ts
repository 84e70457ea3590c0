/** Reads the head of a request, with checks where node:http is lenient. */
import type { IncomingMessage } from 'node:http'
import { AppError } from '#errors.ts'

/** Returns the announced size of the body; undefined for a chunked body. Throws AppError bad_request. */
export function declaredBytes({ headers, httpVersionMinor }: IncomingMessage): number | undefined {
  const coding = headers['transfer-encoding']
  if (coding === undefined) return Number(headers['content-length'] ?? 0)
  // RFC 9112 §6.1: a transfer coding in HTTP/1.0 is an error. Decoding others than `chunked` is not supported.
  if (httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked') {
    throw new AppError(
      'bad_request',
      `Transfer-Encoding "${coding}" is not supported; send chunked, and compress with Content-Encoding`,
    )
  }
  return undefined
}

/** RFC 9112 §3.2: exactly one Host in HTTP/1.1. Throws AppError bad_request. */
export function hostOf({ headers, rawHeaders, httpVersionMinor }: IncomingMessage): string | undefined {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  if (hosts > 1 || (hosts === 0 && httpVersionMinor === 1)) {
    throw new AppError('bad_request', `the request has ${hosts} Host headers; send one`)
  }
  return headers.host
}

export type Target = { readonly path: string; readonly query: string }

/** Splits a request target: `/path?query`, or the absolute form that a server must accept (RFC 9112 §3.2.2). */
export function targetOf(url: string): Target {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  if (start === -1) return { path: '', query: '' }
  const mark = url.indexOf('?', start)
  return mark === -1 ? { path: url.slice(start), query: '' } : { path: url.slice(start, mark), query: url.slice(mark + 1) }
}
