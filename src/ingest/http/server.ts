import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Registry } from 'prom-client'
import { secretsEqual } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { errorCode } from '#lib/files.ts'
import type { Service } from '#lib/service.ts'
import { healthy, notReady } from '#model/health.ts'
import { requestLimits } from '#model/limits.ts'
import type { Certificate } from '../certificate.ts'
import type { IngestCounters } from '../metrics.ts'
import type { Sessions } from '../mqtt/sessions.ts'
import { upgrade, upgradeProblem } from '../mqtt/websocket.ts'
import { Connection } from './connection.ts'
import { Exchange, type Ingest } from './exchange.ts'
import { httpLimits } from './limits.ts'
import { answerJson, answerProblem, answerText, rawProblem, requestError } from './responses.ts'

export type IngestServerOptions = {
  readonly listen: { readonly host: string; readonly port: number }
  /** Of the whole node. */
  readonly maxConnections: number
  /** Those that are not of this server. */
  readonly otherConnections: () => number
  readonly requestTimeoutSeconds: number
  readonly ingest: Omit<Ingest, 'draining'>
  /** Why this node should get no requests now; empty when it should. */
  readonly notReady: () => readonly string[]
  readonly registry: Registry
  /** What `/metrics` asks for; null where anybody who reaches this server may read it. */
  readonly metricsToken: string | null
  /** With it, HTTPS and secure WebSocket. */
  readonly certificate: Certificate | undefined
  /** Who gets the connections to `/mqtt`. They are to be drained before this server stops. */
  readonly mqtt: Pick<Sessions, 'open' | 'isDraining'>
}

const plainTarget = { path: '/v1/ingest', query: '' }
const mqttPath = '/mqtt'
const healthyBody = JSON.stringify(healthy)
const backlog = 4096

/**
 * The HTTP service of a node: one route that takes records in, one that becomes MQTT, and three that tell how it is.
 *
 * Owns: connections, their number and their end, paths and methods. Does not own: what a request means (exchange.ts).
 * Law: after `stop` nothing is accepted, and what was accepted has been answered or its connection closed.
 */
export class IngestServer implements Service {
  readonly name = 'ingest server'
  readonly #options: IngestServerOptions
  readonly #ingest: Ingest
  readonly #counters: IngestCounters
  readonly #clock: Clock
  readonly #connections = new Map<Socket, Connection>()
  readonly #server: Server
  #draining = false
  #cancelSweep = (): void => undefined
  #stopped: Promise<void> | undefined

  constructor(options: IngestServerOptions) {
    this.#options = options
    this.#ingest = { ...options.ingest, draining: () => this.#draining }
    this.#counters = options.ingest.counters
    this.#clock = options.ingest.clock
    this.#server = this.#createServer()
  }

  get connections(): number {
    return this.#connections.size
  }

  get address(): { readonly host: string; readonly port: number } {
    const { address, port } = this.#server.address() as AddressInfo
    return { host: address, port }
  }

  async start(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject)
    this.#server.listen({ ...this.#options.listen, backlog }, resolve)
    await promise
    this.#server.off('error', reject)
    this.#sweep()
  }

  stop(signal: AbortSignal): Promise<void> {
    this.#stopped ??= this.#drain(signal)
    return this.#stopped
  }

  #createServer(): Server {
    const { certificate, requestTimeoutSeconds } = this.#options
    const requestTimeout = requestTimeoutSeconds * 1000
    const settings = {
      requestTimeout,
      headersTimeout: Math.min(requestLimits.headersTimeoutMs, requestTimeout),
      keepAliveTimeout: requestLimits.idleConnectionMs,
      connectionsCheckingInterval: Math.min(httpLimits.timeoutCheckMs, requestTimeout / 4),
      maxHeaderSize: requestLimits.headerBytesMax,
      // Checked in exchange.ts, with an answer that says so.
      requireHostHeader: false,
      // Elsewhere an upgrade is ignored, as RFC 9110 §7.8 has it.
      shouldUpgradeCallback: ({ url = '' }: IncomingMessage) => targetOf(url).path === mqttPath,
    }
    const server = certificate === undefined ? createServer(settings) : secureServer(certificate, settings)
    // A client may end its side once its request is out, and still read the answer.
    Object.assign(server, { httpAllowHalfOpen: true })
    // node:http drops what is over the bound in silence. One more than the bound is kept, to tell.
    server.maxHeadersCount = requestLimits.headersMax + 1
    server.maxConnections = this.#options.maxConnections
    server.on(certificate === undefined ? 'connection' : 'secureConnection', (socket: Socket) => this.#onConnection(socket))
    server.on('upgrade', (request, stream, head) => this.#onUpgrade(request, stream as Socket, head))
    server.on('drop', () => {
      this.#counters.droppedConnections += 1
    })
    server.on('request', (request, response) => this.#onRequest(request, response, false))
    server.on('checkContinue', (request, response) => this.#onRequest(request, response, true))
    server.on('checkExpectation', (request, response) => {
      const detail = `Expect "${request.headers.expect}" can't be met; send 100-continue or leave it out`
      this.#exchange(request, response, false)?.refuse(new AppError('expectation_failed', detail))
    })
    server.on('connect', (_request, stream) => {
      const error = new AppError('method_not_allowed', 'this is no proxy; send events with POST /v1/ingest')
      stream.on('error', () => stream.destroy())
      stream.end(rawProblem(error, this.#ingest.baseUrl, this.#clock.now()))
    })
    server.on('clientError', (error, stream) => {
      const connection = this.#connections.get(stream as Socket)
      const code = errorCode(error)
      // The first: the client is gone. The last: it never said a word, so it waits for no answer.
      if (connection === undefined || code === 'ECONNRESET' || !stream.writable || connection.socket.bytesRead === 0)
        stream.destroy()
      else connection.fail(requestError(code))
    })
    return server
  }

  #onConnection(socket: Socket): void {
    if (this.#connections.size + this.#options.otherConnections() >= this.#options.maxConnections) {
      this.#counters.droppedConnections += 1
      socket.destroy()
      return
    }
    const connection = new Connection({ socket, baseUrl: this.#ingest.baseUrl, clock: this.#clock })
    this.#connections.set(socket, connection)
    socket.once('close', () => {
      this.#connections.delete(socket)
      connection.receiving?.abort()
    })
  }

  /** Undefined when nothing more is taken from this connection. */
  #exchange(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): Exchange | undefined {
    const connection = this.#connections.get(request.socket)
    if (connection === undefined || connection.closing) {
      request.resume()
      return undefined
    }
    connection.opened()
    // Not 'finish': node:http listens to that itself, and a second listener costs an array for each request.
    response.on('close', connection.onAnswered)
    // RFC 9112 §9.6: nothing after a request with `Connection: close` is looked at.
    if (!response.shouldKeepAlive) connection.closing = true
    return new Exchange(this.#ingest, { connection, request, response, awaitsContinue })
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void {
    const exchange = this.#exchange(request, response, awaitsContinue)
    if (exchange === undefined) return
    if (request.rawHeaders.length > 2 * requestLimits.headersMax) {
      const detail = `the request has more than ${requestLimits.headersMax} headers; send fewer`
      exchange.refuse(new AppError('headers_too_large', detail), { close: true })
      return
    }
    const { url = '', method } = request
    const { path, query } = url === plainTarget.path ? plainTarget : targetOf(url)
    if (path === '/v1/ingest') {
      if (method === 'POST') exchange.receive(query)
      else exchange.refuse(new AppError('method_not_allowed', `send events with POST, not ${method}`), { allow: 'POST' })
      return
    }
    if (path === mqttPath) {
      const detail = `this is MQTT over WebSocket; connect an MQTT client to ws${this.#options.certificate === undefined ? '' : 's'}://<host>${mqttPath}`
      exchange.refuse(new AppError('bad_request', detail))
    } else if (path !== '/healthz' && path !== '/readyz' && path !== '/metrics') {
      exchange.refuse(new AppError('not_found', 'there is nothing here; send events with POST /v1/ingest'))
    } else if (method !== 'GET' && method !== 'HEAD') {
      exchange.refuse(new AppError('method_not_allowed', `ask for ${path} with GET`), { allow: 'GET, HEAD' })
    } else if (path === '/metrics' && !this.#mayReadMetrics(request)) {
      exchange.refuse(new AppError('unauthorized', 'send INLET_METRICS_TOKEN as Authorization: Bearer'))
    } else {
      this.#tell(path, response)
    }
  }

  #mayReadMetrics({ headers }: IncomingMessage): boolean {
    const { metricsToken } = this.#options
    return metricsToken === null || secretsEqual(headers.authorization ?? '', `Bearer ${metricsToken}`)
  }

  #onUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const { query } = targetOf(request.url ?? '')
    const { mqtt } = this.#options
    const problem = mqtt.isDraining ? 'this node is shutting down; connect again' : upgradeProblem(request)
    if (problem !== undefined) {
      const error = mqtt.isDraining
        ? new AppError('unavailable', problem, { retryAfterSeconds: 1 })
        : new AppError('bad_request', problem)
      socket.on('error', () => socket.destroy())
      socket.end(rawProblem(error, this.#ingest.baseUrl, this.#clock.now()))
      return
    }
    upgrade(request, socket, head, this.#clock, (wire) => wire.listen(mqtt.open(wire, { host: request.headers.host, query })))
  }

  #tell(path: '/healthz' | '/readyz' | '/metrics', response: ServerResponse): void {
    switch (path) {
      case '/healthz':
        answerJson(response, 200, healthyBody, this.#draining)
        break
      case '/readyz': {
        const reasons = this.#draining ? ['shutting down'] : this.#options.notReady()
        if (reasons.length === 0) answerJson(response, 200, healthyBody, this.#draining)
        else answerProblem(response, notReady(reasons), { baseUrl: this.#ingest.baseUrl, close: this.#draining })
        break
      }
      case '/metrics': {
        const { registry } = this.#options
        registry.metrics().then(
          (text) => answerText(response, registry.contentType, text),
          (error: unknown) => response.destroy(error instanceof Error ? error : undefined),
        )
      }
    }
  }

  #sweep(): void {
    this.#cancelSweep = this.#clock.setTimer(() => {
      for (const connection of this.#connections.values()) connection.receiving?.checkRate()
      this.#sweep()
    }, requestLimits.rateWindowMs)
  }

  async #drain(signal: AbortSignal): Promise<void> {
    this.#draining = true
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    for (const { socket } of this.#connections.values()) if (socket.bytesRead === 0) socket.destroy()
    // A body that dawdles must not use up the time that the log needs to seal its segments.
    const cancel = this.#clock.setTimer(() => this.#endUnfinished(), httpLimits.drainBodyMs)
    const closeAll = () => this.#server.closeAllConnections()
    if (signal.aborted) closeAll()
    else signal.addEventListener('abort', closeAll, { once: true })
    await closed
    signal.removeEventListener('abort', closeAll)
    cancel()
    this.#cancelSweep()
  }

  #endUnfinished(): void {
    const error = new AppError('unavailable', 'this node is shutting down; send the request again', { retryAfterSeconds: 1 })
    for (const connection of this.#connections.values()) {
      if (connection.receiving !== undefined && !connection.receiving.complete) connection.receiving.fail(error)
      else if (!connection.busy) connection.socket.destroy()
    }
  }
}

function secureServer(certificate: Certificate, settings: ServerOptions): Server {
  const server = createSecureServer({ ...certificate.options, ...settings })
  certificate.subscribe((options) => server.setSecureContext(options))
  return server
}

/** The path and query of a request target: `/path?query`, or the absolute form that RFC 9112 §3.2.2 has us accept. */
function targetOf(url: string): { readonly path: string; readonly query: string } {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  if (start === -1) return { path: '', query: '' }
  const mark = url.indexOf('?', start)
  return mark === -1 ? { path: url.slice(start), query: '' } : { path: url.slice(start, mark), query: url.slice(mark + 1) }
}
