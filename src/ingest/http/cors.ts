/**
 * Requests of web pages of other origins (the CORS protocol of the Fetch standard).
 *
 * Owns: the origins whose pages may send, and the headers that tell browsers. Does not own: keys, and the origins of a public key.
 * Law: no response allows credentials. A page sends a key that it knows, never a cookie of this host.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '#errors.ts'

const preflightHeaders = [
  ['Access-Control-Allow-Methods', 'POST'],
  [
    'Access-Control-Allow-Headers',
    'X-API-Key, Authorization, Content-Type, Content-Encoding, Idempotency-Key, Inlet-Ack, Prefer',
  ],
  // The longest time that Chromium accepts.
  ['Access-Control-Max-Age', '7200'],
].flat()

export class Cors {
  readonly #any: boolean
  readonly #origins: ReadonlySet<string>

  /** `*` allows every origin. */
  constructor(origins: readonly string[]) {
    this.#any = origins.includes('*')
    this.#origins = new Set(origins)
  }

  allows(origin: string): boolean {
    return this.#any || this.#origins.has(origin)
  }

  /** Adds the headers that let the page read the response, whichever it will be. */
  addHeaders({ headers: { origin } }: IncomingMessage, response: ServerResponse): void {
    // Caches must not give the response for one origin to another.
    if (!this.#any) response.setHeader('Vary', 'Origin')
    if (origin === undefined || !this.allows(origin)) return
    response.setHeader('Access-Control-Allow-Origin', this.#any ? '*' : origin)
    response.setHeader('Access-Control-Expose-Headers', 'Retry-After, Idempotent-Replayed, Inlet-Ack')
  }

  /** Returns the error for a page that may not send; undefined if it may, or if no page sends. */
  problem({ headers: { origin } }: IncomingMessage): AppError | undefined {
    if (origin === undefined || this.allows(origin)) return undefined
    return new AppError('forbidden', `pages of ${origin} may not send here; the operator can add it to INLET_CORS_ORIGINS`)
  }
}

/** Whether a browser asks if a page may send its request. */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined
}

export function sendPreflight(response: ServerResponse, close: boolean): void {
  response.writeHead(204, close ? [...preflightHeaders, 'Connection', 'close'] : preflightHeaders)
  response.end()
}
