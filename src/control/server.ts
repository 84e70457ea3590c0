/**
 * The HTTP server of control: management API, node API, health, OpenAPI description.
 *
 * Owns: rules for every request (limits, timeouts, credentials, error format). Does not own: the routes.
 */
import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import { type FastifyInstance, type FastifyPluginAsync, type FastifyRequest, fastify } from 'fastify'
import { serializerCompiler } from 'fastify-type-provider-zod'
import { Histogram, type Registry } from 'prom-client'
import { AppError } from '#errors.ts'
import { explainJsonError } from '#lib/json.ts'
import type { Logger } from '#lib/telemetry.ts'
import { authenticate, type Credentials, requireScopes } from './authenticate.ts'
import { controlLimits } from './limits.ts'
import { nodeJobRoutes } from './node-api/jobs.ts'
import { nodeApiRoutes } from './node-api/routes.ts'
import { describe } from './openapi.ts'
import { handleErrors, respondToClientError, sendProblem, toAppError, validatorCompiler } from './problem.ts'
import { accountRoutes } from './routes/accounts.ts'
import { bindingRoutes } from './routes/bindings.ts'
import { destinationRoutes } from './routes/destinations.ts'
import { endpointRoutes } from './routes/endpoints.ts'
import { type Health, healthRoutes } from './routes/health.ts'
import { jobRoutes } from './routes/jobs.ts'
import { keyRoutes } from './routes/keys.ts'
import { nodeRoutes } from './routes/nodes.ts'
import { type Downloads, objectRoutes } from './routes/objects.ts'
import { pageRoutes } from './routes/pages.ts'
import { quotaRoutes } from './routes/quotas.ts'
import { jwksRoutes, tokenRoutes } from './routes/tokens.ts'
import { viewRoutes } from './routes/views.ts'
import type { Accounts } from './services/accounts.ts'
import type { Bindings } from './services/bindings.ts'
import type { Commits } from './services/commits.ts'
import type { Destinations } from './services/destinations.ts'
import type { DlqFiles } from './services/dlq-files.ts'
import type { Endpoints } from './services/endpoints.ts'
import type { Inventory } from './services/inventory.ts'
import type { JobLeases } from './services/job-leases.ts'
import type { Jobs } from './services/jobs.ts'
import type { Keys } from './services/keys.ts'
import type { Nodes } from './services/nodes.ts'
import type { Previews } from './services/previews.ts'
import type { Quotas } from './services/quotas.ts'
import type { Snapshots } from './services/snapshots.ts'
import type { Suggestions } from './services/suggestions.ts'
import type { Tokens } from './services/tokens.ts'
import type { Views } from './services/views.ts'
import { rejectUnacceptable, rejectUnrouted } from './unrouted.ts'

export type ServerOptions = {
  readonly baseUrl: string
  readonly logger: Logger
  readonly metrics: Registry
  /** Null if anyone who reaches this server may read the metrics. */
  readonly metricsToken: string | null
  readonly credentials: Credentials
  readonly notReadyReasons: Health['notReadyReasons']
  /** Per API key. */
  readonly requestsPerMinute: number
  /** Per client address. */
  readonly exchangesPerMinute: number
  /** Per client address, before authentication. */
  readonly requestsPerMinutePerAddress: number
  /** Time for a whole request to arrive. */
  readonly requestTimeoutMs: number
  /** Proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[]
  readonly services: Services
  readonly downloads: Downloads
}

type Services = {
  readonly accounts: Accounts
  readonly tokens: Tokens
  readonly keys: Keys
  readonly destinations: Destinations
  readonly endpoints: Endpoints
  readonly views: Views
  readonly previews: Previews
  readonly suggestions: Suggestions
  readonly dlqFiles: DlqFiles
  readonly bindings: Bindings
  readonly commits: Commits
  readonly jobs: Jobs
  readonly jobLeases: JobLeases
  readonly nodes: Nodes
  readonly inventory: Inventory
  readonly quotas: Quotas
  readonly snapshots: Snapshots
}

export async function buildServer(options: ServerOptions): Promise<FastifyInstance> {
  const { baseUrl, logger, metrics, metricsToken, credentials, services, requestTimeoutMs, trustedProxies } = options
  const app = fastify({
    logger: false,
    genReqId: () => randomUUID(),
    bodyLimit: controlLimits.bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    keepAliveTimeout: controlLimits.keepAliveTimeoutMs,
    http: {
      headersTimeout: Math.min(controlLimits.headersTimeoutMs, requestTimeoutMs),
      connectionsCheckingInterval: controlLimits.timeoutCheckMs,
    },
    forceCloseConnections: 'idle',
    // Requests that arrive during a stop are rejected by the hook below, in the usual error format.
    return503OnClosing: false,
    routerOptions: { maxParamLength: controlLimits.paramCharsMax },
    clientErrorHandler: respondToClientError(baseUrl),
    frameworkErrors: (error, _request, reply) => void sendProblem(reply, toAppError(error), baseUrl),
  })
  app.server.maxConnections = controlLimits.connectionsMax
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  handleErrors(app, { baseUrl, logger })
  parseJson(app)
  let closing = false
  app.addHook('preClose', async () => {
    closing = true
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    if (closing) throw new AppError('unavailable', 'the service is stopping', { retryAfterSeconds: 1 })
  })
  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  })
  await app.register(rateLimit, {
    global: false,
    timeWindow: 60_000,
    cache: controlLimits.rateLimitedCallersMax,
    errorResponseBuilder: (_request, { ttl }) => tooMany(ttl),
  })
  requireScopes(app)
  rejectUnrouted(app)
  limitAddresses(app, options.requestsPerMinutePerAddress)
  authenticate(app, credentials)
  measure(app, metrics)
  await describe(app, baseUrl)
  await app.register(healthRoutes({ notReadyReasons: options.notReadyReasons, metrics, metricsToken }))
  await app.register(pageRoutes(baseUrl))
  await app.register(jwksRoutes(services.tokens))
  await app.register(objectRoutes(options.downloads))
  await app.register(managementApi(options), { prefix: '/v1' })
  await app.register(nodeApiRoutes(services), { prefix: '/internal/v1' })
  await app.register(nodeJobRoutes(services.jobLeases), { prefix: '/internal/v1' })
  return app
}

function managementApi({ services, requestsPerMinute, exchangesPerMinute }: ServerOptions): FastifyPluginAsync {
  return async (api) => {
    await rejectUnacceptable(api)
    await api.register(tokenRoutes({ tokens: services.tokens, exchangesPerMinute }))
    await api.register(async (byKey) => {
      byKey.addHook('onRequest', byKey.rateLimit({ max: requestsPerMinute, keyGenerator: ({ principal }) => principal.key_id }))
      await byKey.register(keyRoutes(services.keys))
      await byKey.register(destinationRoutes(services.destinations))
      await byKey.register(endpointRoutes(services.endpoints, services.commits))
      await byKey.register(viewRoutes(services))
      await byKey.register(bindingRoutes(services.bindings))
      await byKey.register(jobRoutes(services.jobs))
      await byKey.register(quotaRoutes(services.quotas))
    })
    await api.register(async (byOperator) => {
      byOperator.addHook('onRequest', byOperator.rateLimit({ max: requestsPerMinute, keyGenerator: () => 'operator' }))
      await byOperator.register(accountRoutes(services.accounts, services.quotas))
      await byOperator.register(nodeRoutes(services.inventory))
    })
  }
}

/** Applies before authentication. Nodes and monitoring are exempt: they call often. */
function limitAddresses(app: FastifyInstance, max: number): void {
  const limit = app.createRateLimit({ max })
  app.addHook('onRequest', async (request) => {
    if (!request.url.startsWith('/v1/')) return
    const counted = await limit(request)
    if (!counted.isAllowed && counted.isExceeded) throw tooMany(counted.ttl)
  })
}

function tooMany(waitMs: number): AppError {
  return new AppError('too_many_requests', 'too many requests; wait before the next one', {
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  })
}

function measure(app: FastifyInstance, registry: Registry): void {
  const seconds = new Histogram({
    name: 'inlet_control_request_seconds',
    help: 'duration of requests, by route',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 30],
    registers: [registry],
  })
  app.addHook('onResponse', async (request, reply) => {
    const labels = { method: request.method, route: request.routeOptions.url ?? 'none', status: reply.statusCode }
    seconds.observe(labels, reply.elapsedTime / 1000)
  })
}

/**
 * Reads only JSON. An empty body counts as no body, whatever the content type. `__proto__` is a field like any other: the strict
 * schemas reject it as unknown.
 */
function parseJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) => {
    if (body.length === 0) return undefined
    if (!isUtf8(body)) throw malformed('must be UTF-8')
    try {
      return JSON.parse(body.toString('utf8'))
    } catch (error) {
      throw malformed(`is not valid JSON: ${explainJsonError(error)}`)
    }
  })
}

function malformed(what: string): AppError {
  const message = `the body ${what}`
  return new AppError('validation_error', message, { errors: [{ path: '', message }] })
}
