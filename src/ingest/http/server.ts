/**
 * The HTTP service of a node: a route that accepts records, a route that upgrades to another protocol, and operator routes.
 *
 * Owns: HTTP connections and their end, paths and methods. Does not own: what a request means (exchange.ts), how many connections
 * the node may have (connection-budget.ts).
 * Law: after `stop` nothing is accepted. Every accepted request got a response, or its connection was closed.
 */
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError } from '#errors.ts'
import { errorCode } from '#lib/files.ts'
import { http, loadHttps } from '#lib/http.ts'
import { addressOf, listen } from '#lib/listen.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import { Periodic } from '#lib/periodic.ts'
import type { ServedCertificate } from '#lib/served-certificate.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { requestLimits } from '#model/limits.ts'
import type { ConnectionBudget, ConnectionSlot } from '../gate/connection-budget.ts'
import { Connection } from './connection.ts'
import { type Cors, isPreflight, sendPreflight } from './cors.ts'
import { Discards } from './discards.ts'
import { Exchange, type ExchangeContext } from './exchange.ts'
import { targetOf } from './head.ts'
import { httpLimits } from './limits.ts'
import { isOperatorPath, type OperatorOptions, operatorProblem, sendOperatorResponse } from './operator-routes.ts'
import { findPage } from './pages.ts'
import { ReadTurns, stopReading } from './read-turns.ts'
import { adviceFor, receiptPath, recordPaths } from './record-paths.ts'
import { rawProblem, requestError, sendPage } from './responses.ts'
import type { UpgradeRoute } from './upgrade-route.ts'

export type HttpServerOptions = {
  readonly listen: ListenAddress
  readonly connections: ConnectionBudget
  readonly requestTimeoutSeconds: number
  readonly exchange: Omit<ExchangeContext, 'isDraining' | 'endsConnections' | 'discards'>
  readonly operator: Omit<OperatorOptions, 'baseUrl'>
  /** Undefined if no web page of another origin may send. */
  readonly cors: Cors | undefined
  /** If set, the server uses HTTPS and secure WebSocket. */
  readonly certificate: ServedCertificate | undefined
  /** Connections that it takes over must be drained before this server stops. */
  readonly upgrade: UpgradeRoute
  readonly logger: Logger
}

const ingestPath = '/v1/ingest'
const plainTarget = { path: ingestPath, query: '' }

export class HttpServer implements Service {
  readonly name = 'http'
  readonly #options: HttpServerOptions
  readonly #exchangeContext: ExchangeContext
  readonly #operatorOptions: OperatorOptions
  readonly #connections = new Map<Socket, Connection>()
  /** Connections that the next check may find authenticated, or overdue. */
  readonly #unauthenticated = new Set<Connection>()
  readonly #turns = new ReadTurns()
  readonly #server: Server
  readonly #rateChecks: Periodic
  readonly #authenticationChecks: Periodic
  #isDraining = false
  #endsConnections = false
  #stopped: Promise<void> | undefined

  constructor(options: HttpServerOptions) {
    this.#options = options
    const discards = new Discards(options.exchange.clock)
    this.#exchangeContext = {
      ...options.exchange,
      discards,
      isDraining: () => this.#isDraining,
      endsConnections: () => this.#endsConnections,
    }
    this.#operatorOptions = { ...options.operator, baseUrl: options.exchange.baseUrl }
    this.#server = this.#createServer()
    this.#rateChecks = new Periodic({
      name: 'rate check',
      intervalMs: requestLimits.rateWindowMs,
      run: () => this.#checkRates(),
      failure: 'rate check failed',
      clock: options.exchange.clock,
      logger: options.logger,
    })
    this.#authenticationChecks = new Periodic({
      name: 'authentication check',
      intervalMs: httpLimits.timeoutCheckMs,
      run: () => this.#expireUnauthenticated(),
      failure: 'authentication check failed',
      clock: options.exchange.clock,
      logger: options.logger,
    })
  }

  get address(): ListenAddress {
    return addressOf(this.#server)
  }

  async start(): Promise<void> {
    await listen(this.#server, this.#options.listen, 'INLET_INGEST_LISTEN')
    await Promise.all([this.#rateChecks.start(), this.#authenticationChecks.start()])
  }

  /** From now on each response is the last one of its connection, so that clients connect elsewhere. */
  endConnections(): void {
    this.#endsConnections = true
  }

  stop(signal: AbortSignal): Promise<void> {
    this.#stopped ??= this.#drain(signal)
    return this.#stopped
  }

  #createServer(): Server {
    const { certificate, requestTimeoutSeconds, connections, upgrade } = this.#options
    const requestTimeout = requestTimeoutSeconds * 1000
    const settings = {
      requestTimeout,
      headersTimeout: Math.min(requestLimits.headersTimeoutMs, requestTimeout),
      keepAliveTimeout: requestLimits.idleConnectionMs,
      connectionsCheckingInterval: Math.min(httpLimits.timeoutCheckMs, requestTimeout / 4),
      maxHeaderSize: requestLimits.headerBytesMax,
      // Checked in head.ts, which explains the problem to the client.
      requireHostHeader: false,
      // On other paths an upgrade is ignored (RFC 9110 §7.8).
      shouldUpgradeCallback: ({ url = '' }: IncomingMessage) => targetOf(url).path === upgrade.path,
    }
    const server = certificate === undefined ? http.createServer(settings) : secureServer(certificate, settings)
    // A client may end its side after its request and still read the response.
    Object.assign(server, { httpAllowHalfOpen: true })
    // node:http silently drops headers above the bound. Allowing one more makes this detectable.
    server.maxHeadersCount = requestLimits.headersMax + 1
    server.maxConnections = connections.max
    server.on('drop', () => connections.countDropped())
    if (certificate === undefined) server.on('connection', (socket) => this.#onConnection(socket, connections.accept(socket)))
    else {
      server.on('connection', (socket) => connections.acceptHandshake(socket))
      server.on('secureConnection', (socket: Socket) => this.#onConnection(socket, connections.secured(socket)))
    }
    server.on('upgrade', (request, stream, head) => this.#onUpgrade(request, stream as Socket, head))
    server.on('request', (request, response) => this.#onRequest(request, response, false))
    server.on('checkContinue', (request, response) => this.#onRequest(request, response, true))
    server.on('checkExpectation', (request, response) => {
      const detail = `Expect "${request.headers.expect}" is not supported; send 100-continue or leave it out`
      this.#openExchange(request, response, false)?.reject(new AppError('expectation_failed', detail))
    })
    server.on('connect', (_request, stream) => {
      const error = new AppError('method_not_allowed', 'this is not a proxy; send events with POST /v1/ingest')
      stream.on('error', () => stream.destroy())
      this.#endRaw(stream, error, ['Allow', 'GET, HEAD, POST'])
    })
    server.on('clientError', (error, stream) => {
      const connection = this.#connections.get(stream as Socket)
      const code = errorCode(error)
      // ECONNRESET: the client is gone. No bytes read: it never sent anything, so it does not wait for a response.
      if (connection === undefined || code === 'ECONNRESET' || !stream.writable || connection.socket.bytesRead === 0)
        stream.destroy()
      else connection.fail(requestError(code))
    })
    return server
  }

  #onConnection(socket: Socket, slot: ConnectionSlot | undefined): void {
    if (slot === undefined) {
      socket.destroy()
      return
    }
    const { baseUrl, clock } = this.#options.exchange
    const connection = new Connection({ socket, slot, turns: this.#turns, baseUrl, clock })
    this.#connections.set(socket, connection)
    this.#unauthenticated.add(connection)
    socket.once('close', () => {
      this.#connections.delete(socket)
      this.#unauthenticated.delete(connection)
      connection.receiving?.abort()
    })
  }

  /** Returns undefined if the connection accepts no more requests. */
  #openExchange(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): Exchange | undefined {
    const connection = this.#connections.get(request.socket)
    if (connection === undefined || connection.isClosing) {
      // The body of the last request has ended, so there is nothing left to read for.
      stopReading(request.socket)
      return undefined
    }
    connection.opened()
    // Not 'finish': node:http listens to that itself, and a second listener costs an array per request.
    response.on('close', connection.onResponseSent)
    // RFC 9112 §9.6: nothing is read after a request with `Connection: close`.
    if (!response.shouldKeepAlive) connection.isClosing = true
    return new Exchange(this.#exchangeContext, { connection, request, response, awaitsContinue })
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void {
    const exchange = this.#openExchange(request, response, awaitsContinue)
    if (exchange === undefined) return
    const { url = '', method } = request
    const { path, query } = url === ingestPath ? plainTarget : targetOf(url)
    const { cors } = this.#options
    const content = recordPaths.get(path)
    const isReceipt = path.startsWith(receiptPath)
    if (cors !== undefined && (content !== undefined || isReceipt)) cors.addHeaders(request, response)
    if (request.rawHeaders.length > 2 * requestLimits.headersMax) {
      const detail = `the request has more than ${requestLimits.headersMax} headers; send fewer`
      exchange.reject(new AppError('headers_too_large', detail), { close: true })
      return
    }
    if (content === undefined) this.#connections.get(request.socket)?.announceIdleTime(response)
    if (isReceipt && method === 'GET') exchange.lookUp(query, path.slice(receiptPath.length))
    else if (content !== undefined) {
      if (method === 'POST') exchange.receive(query, content)
      else if (cors !== undefined && isPreflight(request)) this.#respondToPreflight(cors, exchange, request, response)
      else exchange.reject(new AppError('method_not_allowed', `send events with POST, not ${method}`), { allow: 'POST' })
    } else if (path === this.#options.upgrade.path) {
      if (method === 'GET') exchange.reject(new AppError('bad_request', this.#options.upgrade.hint))
      else exchange.reject(new AppError('method_not_allowed', this.#options.upgrade.hint), { allow: 'GET' })
    } else if (!isOperatorPath(path)) this.#respondWithPage(path, exchange, request, response)
    else if (!isRead(method)) {
      exchange.reject(new AppError('method_not_allowed', `request ${path} with GET`), { allow: 'GET, HEAD' })
    } else {
      const problem = operatorProblem(path, request, this.#operatorOptions)
      if (problem === undefined) sendOperatorResponse(path, response, this.#isDraining, this.#operatorOptions)
      else exchange.reject(problem)
    }
  }

  #respondToPreflight(cors: Cors, exchange: Exchange, request: IncomingMessage, response: ServerResponse): void {
    const problem = cors.problem(request)
    if (problem !== undefined) exchange.reject(problem)
    else {
      this.#connections.get(request.socket)?.announceIdleTime(response)
      sendPreflight(response, this.#endsConnections)
    }
  }

  #respondWithPage(path: string, exchange: Exchange, request: IncomingMessage, response: ServerResponse): void {
    const page = findPage(path, request, this.#options.exchange.baseUrl())
    if (page === undefined) {
      exchange.reject(new AppError('not_found', `this path does not exist; ${adviceFor(path)}`))
    } else if (!isRead(request.method)) {
      const detail = `${path} is a page to read; send events with POST /v1/ingest`
      exchange.reject(new AppError('method_not_allowed', detail), { allow: 'GET, HEAD' })
    } else sendPage(response, page, this.#isDraining)
  }

  #onUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const { upgrade, cors } = this.#options
    if (request.method !== 'GET') {
      socket.on('error', () => socket.destroy())
      this.#endRaw(socket, new AppError('method_not_allowed', upgrade.hint), ['Allow', 'GET'])
      return
    }
    // Browsers send no preflight before an upgrade.
    const problem = cors?.problem(request) ?? upgrade.problem(request)
    const connection = this.#connections.get(socket)
    if (problem === undefined && connection !== undefined) {
      this.#unauthenticated.delete(connection)
      upgrade.accept(request, { socket, slot: connection.slot, head, query: targetOf(request.url ?? '').query })
      return
    }
    socket.on('error', () => socket.destroy())
    if (problem === undefined) socket.destroy()
    else this.#endRaw(socket, problem, upgrade.problemHeaders)
  }

  #endRaw(stream: Duplex, error: AppError, headers: readonly string[]): void {
    const { baseUrl, clock } = this.#options.exchange
    stream.end(rawProblem(error, baseUrl(), { now: clock.now(), headers }))
    // node:http no longer watches over it. Without this, the connection would stay as long as its client does not close it.
    this.#connections.get(stream as Socket)?.linger()
    stream.resume()
  }

  #checkRates(): void {
    for (const connection of this.#connections.values()) connection.receiving?.checkRate()
  }

  #expireUnauthenticated(): void {
    const now = this.#options.exchange.clock.monotonic()
    for (const connection of this.#unauthenticated) {
      if (connection.slot.isAuthenticated) this.#unauthenticated.delete(connection)
      else connection.expire(now)
    }
  }

  async #drain(signal: AbortSignal): Promise<void> {
    this.#isDraining = true
    this.endConnections()
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    for (const { socket } of this.#connections.values()) if (socket.bytesRead === 0) socket.destroy()
    // A slow body must not use the time that the log needs to seal its segments.
    const cancel = this.#options.exchange.clock.setTimer(() => this.#endUnfinished(), httpLimits.drainBodyMs)
    const closeAll = () => this.#server.closeAllConnections()
    if (signal.aborted) closeAll()
    else signal.addEventListener('abort', closeAll, { once: true })
    await closed
    signal.removeEventListener('abort', closeAll)
    cancel()
    await Promise.all([this.#rateChecks.stop(), this.#authenticationChecks.stop(), this.#exchangeContext.conversions.stop()])
  }

  #endUnfinished(): void {
    const error = new AppError('unavailable', 'this node is shutting down; send the request again', { retryAfterSeconds: 1 })
    for (const connection of this.#connections.values()) {
      if (connection.receiving !== undefined && !connection.receiving.isComplete) connection.receiving.fail(error)
      else if (!connection.isBusy) connection.socket.destroy()
    }
  }
}

function isRead(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD'
}

function secureServer(certificate: ServedCertificate, settings: ServerOptions): Server {
  const server = loadHttps().createServer({ ...certificate.options, ...settings })
  certificate.subscribe((options) => server.setSecureContext(options))
  return server
}
