/** A proxy before an HTTP server that does to the next requests what a test says, and passes on all others. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'

export type Fault =
  /** Responds with this, and passes nothing on. */
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }
  /** Resets the connection, and passes nothing on. */
  | 'refuse'
  /** Passes half of the body on, then resets both connections. */
  | 'cut'
  /** Passes the request on, and resets the connection in place of the response. */
  | 'lose-response'
  /** Passes the request on, and sends half of the response before it resets the connection. */
  | 'cut-response'
  /** Passes the request on, and responds with 502 in place of its response. */
  | 'bad-gateway'
  /** Never responds. */
  | 'hang'
  /** Passes it on. */
  | 'pass'

export class ScriptedProxy implements AsyncDisposable {
  readonly url: string
  /** Where requests are passed on to. A test may change it. */
  target: string
  /** Method and path of each request, in their order. */
  readonly seen: string[] = []
  readonly #server: Server
  readonly #script: Fault[] = []

  private constructor(server: Server, port: number, target: string) {
    this.#server = server
    this.target = target
    this.url = `http://127.0.0.1:${port}`
    server.on('request', (incoming, outgoing) => {
      this.#handle(incoming, outgoing).catch(() => incoming.socket.resetAndDestroy())
    })
  }

  static async start(target: string): Promise<ScriptedProxy> {
    const server = createServer({ keepAliveTimeout: 60_000 })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('a TCP server without a port')
    return new ScriptedProxy(server, address.port, target)
  }

  /** Does this to the next requests, one each. */
  script(...faults: readonly Fault[]): void {
    this.#script.push(...faults)
  }

  /** Passes on all requests that follow. */
  clear(): void {
    this.#script.length = 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  async #handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    this.seen.push(`${incoming.method} ${incoming.url}`)
    const fault = this.#script.shift()
    if (fault === 'hang') return
    if (fault === 'refuse') {
      incoming.socket.resetAndDestroy()
      return
    }
    const body = Buffer.concat(await Array.fromAsync(incoming as AsyncIterable<Buffer>))
    if (typeof fault === 'object') {
      outgoing.writeHead(fault.status, { 'content-type': 'application/problem+json', ...fault.headers })
      outgoing.end(typeof fault.body === 'string' ? fault.body : JSON.stringify(fault.body ?? {}))
      return
    }
    const onward = request(new URL(incoming.url ?? '/', this.target), { method: incoming.method, headers: incoming.headers })
    if (fault === 'cut') {
      onward.on('error', () => undefined)
      await new Promise((resolve) => onward.write(body.subarray(0, body.length >> 1), resolve))
      onward.destroy()
      incoming.socket.resetAndDestroy()
      return
    }
    onward.end(body)
    const [response] = (await once(onward, 'response')) as [IncomingMessage]
    const answer = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>))
    if (fault === 'lose-response') {
      incoming.socket.resetAndDestroy()
      return
    }
    if (fault === 'bad-gateway') {
      outgoing.writeHead(502).end()
      return
    }
    const { 'transfer-encoding': _, ...headers } = response.headers
    outgoing.writeHead(response.statusCode ?? 502, { ...headers, 'content-length': answer.length })
    if (fault === 'cut-response') outgoing.write(answer.subarray(0, answer.length >> 1), () => incoming.socket.resetAndDestroy())
    else outgoing.end(answer)
  }
}
