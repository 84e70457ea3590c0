import type { RequestOptions } from 'node:https'

/**
 * HTTP without undici.
 *
 * `import 'node:http'` in an ES module reads every name that Node exports there, and for some of them Node loads undici, as it does for
 * `fetch`. That takes 10 MB of each process. So modules take the functions of `node:http` from here, and import only types.
 */
export const http = process.getBuiltinModule('node:http')

/** Loaded on demand: 4 MB that a process without a certificate or a remote server does not need. */
export const loadHttps = () => process.getBuiltinModule('node:https')

export const loadTls = () => process.getBuiltinModule('node:tls')

/** The client for a URL. */
export const clientOf = (url: string) => (url.startsWith('https:') ? loadHttps() : http)

export type HttpRequest = {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
  /** PEM: who may have signed the certificate of the server. Undefined: those that Node trusts. */
  readonly ca?: Buffer | undefined
  /** Skips the check of the certificate: nothing secret may be in the request, and the response proves nothing. */
  readonly acceptsAnyServer?: boolean
  /** Rejects a longer response. */
  readonly responseBytesMax?: number
}

export type HttpResponse = { readonly status: number; readonly body: Buffer }

/** Sends a request and reads the whole response. Rejects if the connection fails or the signal aborts. Does not follow redirects. */
export function sendRequest(url: string, request: HttpRequest): Promise<HttpResponse> {
  const { method, headers, body, signal, ca, acceptsAnyServer = false, responseBytesMax = Number.POSITIVE_INFINITY } = request
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>()
  const tls = { ...(ca === undefined ? {} : { ca }), ...(acceptsAnyServer ? { rejectUnauthorized: false, agent: false } : {}) }
  const outgoing = clientOf(url).request(url, { method, headers, signal, ...tls } as RequestOptions)
  outgoing.once('error', reject)
  outgoing.once('response', (response) => {
    const chunks: Buffer[] = []
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.byteLength
      if (bytes > responseBytesMax) response.destroy(new Error(`the response has more than ${responseBytesMax} bytes`))
      else chunks.push(chunk)
    })
    response.once('error', reject)
    response.once('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }))
  })
  outgoing.end(body)
  return promise
}
