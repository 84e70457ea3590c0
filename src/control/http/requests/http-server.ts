/**
 * Settings and hooks of both HTTP servers of control.
 *
 * Owns: rules for every request (limits, timeouts, error format, JSON, durations). Does not own: credentials and routes (server.ts, http/node-api/server.ts).
 */
import { randomUUID } from 'node:crypto'
import type { Server as TlsServer } from 'node:https'
import { setImmediate } from 'node:timers/promises'
import { type FastifyInstance, type FastifyRequest, fastify } from 'fastify'
import { serializerCompiler } from 'fastify-type-provider-zod'
import { Histogram, type Registry } from 'prom-client'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { ServedCertificate } from '#lib/served-certificate.ts'
import type { Logger } from '#lib/telemetry.ts'
import { bodyLimits } from '#model/limits.ts'
import { parseJsonBody } from '#model/request-body.ts'
import { controlLimits } from '../../limits.ts'
import {
  handleErrors,
  respondToClientError,
  respondToConnect,
  respondToExpectation,
  sendProblem,
  toAppError,
  validatorCompiler,
} from './problem.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Values in the JSON of a request, if the bound of all others is too low. */
    bodyPartsMax?: number
    /** Its response waits for something to happen. */
    isLongPoll?: boolean
  }
}

export type HttpServer = FastifyInstance

export type HttpServerOptions = {
  readonly baseUrl: string
  readonly logger: Logger
  readonly clock: Clock
  readonly requestSeconds: Histogram
  /** Time for a whole request to arrive. */
  readonly requestTimeoutMs: number
  /** Proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies?: readonly string[]
  /** Whether only our own programs send bodies: their fields are not checked for repetitions. */
  readonly isForNodes?: boolean
  /** Plain HTTP without it. */
  readonly certificate?: ServedCertificate | undefined
}

/** Creates a server without routes. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { baseUrl, logger, clock, requestSeconds, requestTimeoutMs, certificate } = options
  const { trustedProxies = [] } = options
  const timeouts = {
    headersTimeout: Math.min(controlLimits.headersTimeoutMs, requestTimeoutMs),
    connectionsCheckingInterval: controlLimits.timeoutCheckMs,
  }
  const app = fastify({
    logger: false,
    genReqId: () => randomUUID(),
    bodyLimit: controlLimits.bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    keepAliveTimeout: controlLimits.keepAliveTimeoutMs,
    // Node would respond to a request without Host by itself, without a problem. The hook below does.
    http: { ...timeouts, requireHostHeader: false },
    // The types of Fastify differ by this, although nothing here depends on it.
    ...((certificate === undefined
      ? {}
      : { https: { ...certificate.options, ...timeouts, requireHostHeader: false } }) as object),
    forceCloseConnections: 'idle',
    // Requests that arrive during a stop are rejected by the hook below, in the usual error format.
    return503OnClosing: false,
    routerOptions: { maxParamLength: controlLimits.paramCharsMax },
    clientErrorHandler: respondToClientError(baseUrl),
    frameworkErrors: (error, _request, reply) => void sendProblem(reply, toAppError(error), baseUrl),
  })
  app.server.on('connect', respondToConnect(baseUrl))
  app.server.on('checkExpectation', respondToExpectation(baseUrl))
  certificate?.subscribe((renewed) => {
    if ('setSecureContext' in app.server) (app.server as TlsServer).setSecureContext(renewed)
  })
  app.server.maxConnections = controlLimits.connectionsMax
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  handleErrors(app, { baseUrl, logger, clock })
  parseJson(app, options.isForNodes === true)
  let closing = false
  app.addHook('preClose', async () => {
    closing = true
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    if (closing) throw new AppError('unavailable', 'the service is stopping', { retryAfterSeconds: 1 })
    // RFC 9112 §3.2.
    const hosts = request.raw.headersDistinct['host']?.length ?? 0
    if (hosts > 1 || (hosts === 0 && request.raw.httpVersion === '1.1'))
      throw new AppError('bad_request', `the request has ${hosts} Host headers; send one`)
  })
  app.addHook('onSend', async (_request, reply) => {
    // A stop ends connections that are idle when it begins. This one would stay open after the response, and delay the stop.
    if (closing) reply.header('connection', 'close')
  })
  measureRequests(app, requestSeconds)
  return app
}

/** Registers the metric of the requests of both servers. A long poll is none: how long it takes says nothing. */
export function registerRequestSeconds(registry: Registry): Histogram {
  return new Histogram({
    name: 'inlet_control_request_duration_seconds',
    help: 'duration of requests by route, without long polls',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.025, 0.1, 0.5, 2.5, 10, 30],
    registers: [registry],
  })
}

function measureRequests(app: FastifyInstance, seconds: Histogram): void {
  app.addHook('onResponse', async (request, reply) => {
    if (request.routeOptions.config.isLongPoll === true) return
    const labels = { method: request.method, route: request.routeOptions.url ?? 'none', status: reply.statusCode }
    seconds.observe(labels, reply.elapsedTime / 1000)
  })
}

/**
 * Reads only JSON. An empty body counts as no body, whatever the content type. `__proto__` is a field like any other: the strict
 * schemas reject it as unknown. A field that is given twice is rejected: it may be a typo of another.
 */
function parseJson(app: FastifyInstance, mayRepeatFields: boolean): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    const { bodyPartsMax: partsMax = bodyLimits.partsMax } = request.routeOptions.config
    const parsed = parseJsonBody(body, { partsMax, mayRepeatFields })
    // Other requests get a turn before a large report is checked, which takes as long as to parse it.
    if (body.byteLength > controlLimits.bodyBytesMax) await setImmediate()
    return parsed
  })
}
