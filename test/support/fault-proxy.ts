/**
 * Stands between a program and an HTTP service and does what networks and busy services do, to the requests whose path starts with
 * a given text. Everything else is passed on as it came.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export type Fault =
  /** Answers so, as S3 does, and does nothing. */
  | { readonly kind: 'answer'; readonly status: number; readonly code: string }
  /** Takes the request and never answers. */
  | { readonly kind: 'silence' }
  /** Passes so many bytes of the body on and resets both connections. */
  | { readonly kind: 'reset'; readonly afterBytes: number }
  /** Has it done, and resets the connection in place of the answer. */
  | { readonly kind: 'lost-answer' }
  /** Passes the body on at so many bytes a second. */
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

  /** From now on, with requests to that path; with a `share` only that part of them, by chance. */
  break(path: string, fault: Fault, { share = 1, methods = ['PUT', 'POST'] }: Partial<Omit<Rule, 'fault'>> = {}): void {
    this.#rules.set(path, { fault, share, methods })
  }

  heal(path: string): void {
    this.#rules.delete(path)
  }

  /** How many requests to that path met a fault. */
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

  /** The host goes on too: it is signed. */
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
    // A body that was shorter than that is cut at its end.
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
