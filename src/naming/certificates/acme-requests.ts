/**
 * Sends the requests of the ACME library.
 *
 * The library's own HTTP client repeats failed requests for minutes, and then reports an error of its own instead of the cause. Here a request
 * fails at once, and the order is repeated as a whole.
 */
import { request } from 'node:https'
import { buffer } from 'node:stream/consumers'
import acme from 'acme-client'
import { acmeLimits } from './limits.ts'

/** The ACME server or the DNS service could not be used: a retry may soon help. */
export class ServiceUnavailable extends Error {
  override readonly name = 'ServiceUnavailable'
}

export type AcmeRequestOptions = {
  /** PEM: who may have signed the certificate of the server. Undefined: those that Node trusts. */
  readonly ca: Buffer | undefined
  /** Ends requests that are running. */
  readonly signal: AbortSignal
}

type Adapter = Extract<typeof acme.axios.defaults.adapter, (config: never) => unknown>
type Headers = Readonly<Record<string, string>>

/** The library has one client for all its users, so this holds until the next call. */
export function sendAcmeRequests({ ca, signal }: AcmeRequestOptions): void {
  const adapter: Adapter = async (config) => {
    const { url = '', method = 'get', data } = config
    const timeout = AbortSignal.timeout(acmeLimits.requestTimeoutMs)
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<Adapter>>>()
    const outgoing = request(url, {
      method: method.toUpperCase(),
      headers: { ...(config.headers.toJSON() as Headers), 'content-length': Buffer.byteLength(data ?? '') },
      agent: false,
      signal: AbortSignal.any([signal, timeout]),
      ...(ca === undefined ? {} : { ca }),
    })
    const fail = (error: unknown) => {
      const cause = timeout.aborted ? new Error(`no response within ${acmeLimits.requestTimeoutMs / 1000} s`) : error
      reject(new ServiceUnavailable(`${new URL(url).origin} cannot be reached`, { cause }))
    }
    outgoing.once('error', fail)
    outgoing.once('response', (response) => {
      const status = response.statusCode ?? 0
      buffer(response).then((body) => {
        if (status >= 500) fail(new Error(`HTTP ${status}`))
        else
          resolve({
            ...{ status, statusText: response.statusMessage ?? '', config },
            headers: response.headers as Headers,
            data: body.toString(),
          })
      }, fail)
    })
    outgoing.end(data)
    return promise
  }
  acme.axios.defaults.adapter = adapter
}
