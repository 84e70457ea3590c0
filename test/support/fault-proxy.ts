/**
 * A proxy between a program and an HTTP service that behaves as networks and busy services do, for requests whose path has a given
 * prefix. Passes everything else through unchanged.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export type Fault =
  /** Returns this error in the form of S3, without passing the request on. */
  | { readonly kind: 'answer'; readonly status: number; readonly code: string }
  /** Accepts the request and never responds. */
  | { readonly kind: 'silence' }
  /** Forwards this many bytes of the body, then resets both connections. */
  | { readonly kind: 'reset'; readonly afterBytes: number }
  /** Forwards the request, then resets the connection instead of responding. */
  | { readonly kind: 'lost-answer' }
  /** Forwards the body at this many bytes per second. */
  | { readonly kind: 'crawl'; readonly bytesPerSecond: number }

type Rule = { readonly fault: Fault; readonly share: number; readonly methods: readonly string[] }

export class FaultProxy implements AsyncDisposable {
  readonly url: string
  readonly #server: Server
  readonly #target: string
  readonly #rules = new Map<string, Rule>()
  readonly #hits = new Map<string, number>()
  readonly #random: () => number

  private constructor(server: Server, port: number, target: string, random: () => number) {
    this.#server = server
    this.#target = target
    this.#random = random
    this.url = `http://127.0.0.1:${port}`
    server.on('request', (incoming, outgoing) => {
      this.#handle(incoming, outgoing).catch(() => outgoing.destroy())
    })
  }

  static async start(target: string, { random = Math.random }: { readonly random?: () => number } = {}): Promise<FaultProxy> {
    const server = createServer({ keepAliveTimeout: 60_000 })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('a TCP server without a port')
    return new FaultProxy(server, address.port, target, random)
  }

  /** Applies a fault to later requests to that path, or to a random `share` of them. */
  break(path: string, fault: Fault, { share = 1, methods = ['PUT', 'POST'] }: Partial<Omit<Rule, 'fault'>> = {}): void {
    this.#rules.set(path, { fault, share, methods })
  }

  heal(path: string): void {
    this.#rules.delete(path)
  }

  /** Returns the number of requests to that path that met a fault. */
  hits(path: string): number {
    return this.#hits.get(path) ?? 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  async #handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const fault = this.#faultOf(incoming)
    switch (fault?.kind) {
      case undefined:
      case 'lost-answer':
        return this.#pass(incoming, outgoing, fault)
      case 'crawl':
        return this.#pass(incoming, outgoing, fault, slow(fault.bytesPerSecond))
      case 'reset':
        return this.#pass(incoming, outgoing, fault, cut(fault.afterBytes))
      case 'silence':
        incoming.resume()
        return
      case 'answer':
        incoming.resume()
        await once(incoming, 'end')
        outgoing.writeHead(fault.status, { 'content-type': 'application/xml' })
        outgoing.end(
          `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${fault.code}</Code><Message>${fault.code}</Message></Error>`,
        )
    }
  }

  #faultOf({ url = '', method = '' }: IncomingMessage): Fault | undefined {
    for (const [path, { fault, share, methods }] of this.#rules) {
      if (!url.startsWith(path) || !methods.includes(method) || this.#random() >= share) continue
      this.#hits.set(path, this.hits(path) + 1)
      return fault
    }
    return undefined
  }

  /** Forwards the host header too, because it is signed. */
  async #pass(incoming: IncomingMessage, outgoing: ServerResponse, fault?: Fault, through?: Transform): Promise<void> {
    const { method, url } = incoming
    const { expect: _, ...headers } = incoming.headers
    const passed = request(`${this.#target}${url}`, { method, headers })
    try {
      const answered = once(passed, 'response') as Promise<[IncomingMessage]>
      answered.catch(() => undefined)
      await (through === undefined ? pipeline(incoming, passed) : pipeline(incoming, through, passed))
      const [answer] = await answered
      if (fault?.kind === 'lost-answer') {
        answer.resume()
        await once(answer, 'end')
        reset(incoming.socket)
        return
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      await pipeline(answer, outgoing)
    } catch {
      passed.destroy()
      reset(incoming.socket)
    }
  }
}

function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy()
}

function cut(afterBytes: number): Transform {
  let passed = 0
  return new Transform({
    transform(chunk: Buffer, _, done) {
      passed += chunk.length
      if (passed > afterBytes) done(new Error('cut'))
      else done(null, chunk)
    },
    // A shorter body is cut at its end.
    flush: (done) => done(new Error('cut')),
  })
}

function slow(bytesPerSecond: number): Transform {
  return new Transform({
    transform(chunk: Buffer, _, done) {
      setTimeout(() => done(null, chunk), (chunk.length / bytesPerSecond) * 1000)
    },
  })
}
