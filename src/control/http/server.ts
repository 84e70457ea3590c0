/**
 * The public HTTP server of control: management API, health, OpenAPI description.
 *
 * Owns: credentials and rates of requests. Does not own: the routes, what every request is subject to (http-server.ts).
 */
import helmet from '@fastify/helmet'
import rateLimit, { type FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import type { Registry } from 'prom-client'
import type { SignIn, SignInProvider } from '#auth/sign-in.ts'
import type { JoinTokens } from '../fleet/join-tokens.ts'
import type { Inventory } from '../fleet/node-inventory.ts'
import { controlLimits } from '../limits.ts'
import type { Accounts } from '../resources/accounts.ts'
import { actorOf } from '../resources/actor.ts'
import type { AuditTrail } from '../resources/audit-trail.ts'
import type { Bindings } from '../resources/bindings.ts'
import type { Commits } from '../resources/commits.ts'
import type { Compactions } from '../resources/compactions.ts'
import type { DeliveredRecords } from '../resources/delivered-records.ts'
import type { Destinations } from '../resources/destinations.ts'
import type { DlqFiles } from '../resources/dlq-files.ts'
import type { Endpoints } from '../resources/endpoints.ts'
import type { Jobs } from '../resources/jobs.ts'
import type { Keys } from '../resources/keys.ts'
import type { Losses } from '../resources/losses.ts'
import type { People } from '../resources/people.ts'
import type { Previews } from '../resources/previews.ts'
import type { Queries } from '../resources/queries.ts'
import type { Quotas } from '../resources/quotas.ts'
import type { Receipts } from '../resources/receipts.ts'
import type { Secrets } from '../resources/secrets.ts'
import type { Series } from '../resources/series.ts'
import type { Shadows } from '../resources/shadows.ts'
import type { Suggestions } from '../resources/suggestions.ts'
import type { TestEvents } from '../resources/test-events.ts'
import type { Tokens } from '../resources/tokens.ts'
import type { ViewComparisons } from '../resources/view-comparisons.ts'
import type { Views } from '../resources/views.ts'
import { describe } from './openapi/openapi.ts'
import { serveConsole } from './pages/console.ts'
import { pageRoutes } from './pages/pages.ts'
import { auditChanges } from './requests/audit.ts'
import { authenticate, type Credentials, requireScopes } from './requests/authenticate.ts'
import { createHttpServer, type HttpServerOptions } from './requests/http-server.ts'
import { byAddress, tooMany } from './requests/request-rates.ts'
import { skipUnchanged } from './requests/unchanged.ts'
import { rejectUnacceptable, rejectUnrouted } from './requests/unrouted.ts'
import { accountRoutes } from './routes/accounts.ts'
import { auditEventRoutes, installationAuditEventRoutes } from './routes/audit-events.ts'
import { bindingRoutes } from './routes/bindings.ts'
import { deliveredRecordRoutes } from './routes/delivered-records.ts'
import { destinationRoutes } from './routes/destinations.ts'
import { endpointRoutes } from './routes/endpoints.ts'
import { type Health, healthRoutes } from './routes/health.ts'
import { jobRoutes } from './routes/jobs.ts'
import { joinTokenRoutes } from './routes/join-tokens.ts'
import { keyRoutes } from './routes/keys.ts'
import { installationLossRoutes, lossRoutes } from './routes/losses.ts'
import { nodeRoutes } from './routes/nodes.ts'
import { type Downloads, objectRoutes } from './routes/objects.ts'
import { ownSessionRoutes, peopleRoutes, sessionRoutes } from './routes/people.ts'
import { queryRoutes } from './routes/queries.ts'
import { quotaRoutes } from './routes/quotas.ts'
import { receiptRoutes } from './routes/receipts.ts'
import { secretRoutes } from './routes/secrets.ts'
import { endpointSeriesRoutes, viewSeriesRoutes } from './routes/series.ts'
import { shadowRoutes } from './routes/shadows.ts'
import { testEventRoutes } from './routes/test-events.ts'
import { jwksRoutes, tokenRoutes } from './routes/tokens.ts'
import { definitionRoutes } from './routes/view-definitions.ts'
import { viewRoutes } from './routes/views.ts'
import { signInRoutes } from './sign-in/sign-in.ts'

export type ServerOptions = HttpServerOptions & {
  readonly metrics: Registry
  /** Null if anyone who reaches this server may read the metrics. */
  readonly metricsToken: string | null
  readonly credentials: Credentials
  readonly notReadyReasons: Health['notReadyReasons']
  readonly readyNotes: Health['readyNotes']
  /** Per API key. */
  readonly requestsPerMinute: number
  /** Per client address. */
  readonly exchangesPerMinute: number
  /** Per client address, before authentication. */
  readonly requestsPerMinutePerAddress: number
  /** Counts requests together with other control processes. Undefined: this process counts its own. */
  readonly rateLimitStore: FastifyRateLimitStoreCtor | undefined
  readonly services: Services
  readonly signIn: SignIn
  /** Null if people sign in by other ways only. */
  readonly signInProvider: SignInProvider | null
  readonly downloads: Downloads
}

export type Services = {
  readonly auditTrail: AuditTrail
  readonly accounts: Accounts
  readonly tokens: Tokens
  readonly keys: Keys
  readonly destinations: Destinations
  readonly endpoints: Endpoints
  readonly testEvents: TestEvents
  readonly deliveredRecords: DeliveredRecords
  readonly views: Views
  readonly previews: Previews
  readonly suggestions: Suggestions
  readonly comparisons: ViewComparisons
  readonly dlqFiles: DlqFiles
  readonly bindings: Bindings
  readonly shadows: Shadows
  readonly commits: Commits
  readonly losses: Losses
  readonly receipts: Receipts
  readonly jobs: Jobs
  readonly compactions: Compactions
  readonly inventory: Inventory
  readonly joinTokens: JoinTokens
  readonly queries: Queries
  readonly quotas: Quotas
  readonly secrets: Secrets
  readonly people: People
  readonly series: Series
}

export async function buildServer(options: ServerOptions): Promise<FastifyInstance> {
  const { baseUrl, metrics, metricsToken, credentials, services, notReadyReasons, readyNotes } = options
  const app = createHttpServer(options)
  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  })
  await app.register(rateLimit, {
    global: false,
    timeWindow: controlLimits.rateWindowMs,
    cache: controlLimits.rateLimitedCallersMax,
    ...(options.rateLimitStore === undefined ? {} : { store: options.rateLimitStore }),
    errorResponseBuilder: (_request, { ttl }) => tooMany(ttl),
  })
  requireScopes(app)
  limitAddresses(app, options.requestsPerMinutePerAddress)
  rejectUnrouted(app)
  authenticate(app, credentials)
  auditChanges(app, services.auditTrail)
  await describe(app, baseUrl)
  await app.register(healthRoutes({ notReadyReasons, readyNotes, metrics, metricsToken }))
  await app.register(pageRoutes(baseUrl, await serveConsole(app)))
  await app.register(jwksRoutes(services.tokens))
  await app.register(objectRoutes(options.downloads))
  const { signIn, signInProvider: provider, exchangesPerMinute: triesPerMinute } = options
  const audit = { signIn, trail: services.auditTrail, people: services.people }
  await app.register(signInRoutes({ audit, baseUrl, provider, triesPerMinute }), { prefix: '/auth' })
  await app.register(managementApi(options), { prefix: '/v1' })
  return app
}

function managementApi({ services, requestsPerMinute, exchangesPerMinute }: ServerOptions): FastifyPluginAsync {
  return async (api) => {
    await rejectUnacceptable(api)
    skipUnchanged(api)
    await api.register(tokenRoutes(services.tokens, { max: exchangesPerMinute, keyGenerator: byAddress('exchange') }))
    await api.register(async (byKey) => {
      const keyGenerator = ({ principal }: FastifyRequest) => actorOf(principal)
      byKey.addHook('onRequest', byKey.rateLimit({ max: requestsPerMinute, keyGenerator }))
      await byKey.register(keyRoutes(services.keys))
      await byKey.register(secretRoutes(services.secrets))
      await byKey.register(peopleRoutes(services.people))
      await byKey.register(auditEventRoutes(services.auditTrail))
      await byKey.register(destinationRoutes(services.destinations))
      await byKey.register(endpointRoutes(services.endpoints, services.commits))
      await byKey.register(testEventRoutes(services.testEvents))
      await byKey.register(deliveredRecordRoutes(services.deliveredRecords))
      await byKey.register(endpointSeriesRoutes(services.series))
      await byKey.register(viewRoutes(services))
      await byKey.register(viewSeriesRoutes(services.series))
      await byKey.register(definitionRoutes(services))
      await byKey.register(bindingRoutes(services.bindings))
      await byKey.register(shadowRoutes(services.shadows))
      await byKey.register(receiptRoutes(services.receipts))
      await byKey.register(lossRoutes(services.losses))
      await byKey.register(jobRoutes(services.jobs, services.compactions))
      await byKey.register(queryRoutes(services.queries))
      await byKey.register(quotaRoutes(services.quotas))
    })
    await api.register(async (bySession) => {
      bySession.addHook('onRequest', bySession.rateLimit({ max: requestsPerMinute, keyGenerator: byAddress('session') }))
      await bySession.register(sessionRoutes(services.people))
      await bySession.register(ownSessionRoutes(services.people))
    })
    await api.register(async (byOperator) => {
      byOperator.addHook('onRequest', byOperator.rateLimit({ max: requestsPerMinute, keyGenerator: operatorOf }))
      await byOperator.register(accountRoutes(services.accounts, services.quotas, services.people))
      await byOperator.register(nodeRoutes(services.inventory))
      await byOperator.register(joinTokenRoutes(services.joinTokens))
      await byOperator.register(installationAuditEventRoutes(services.auditTrail))
      await byOperator.register(installationLossRoutes(services.losses))
    })
  }
}

/** A person who looks at screens must not use up what programs with the operator token may call. */
function operatorOf({ signedIn }: FastifyRequest): string {
  return signedIn === null ? 'operator' : `operator person:${signedIn.person.id}`
}

/** Applies before authentication, by route: a path has many spellings. Monitoring and pages are exempt. */
function limitAddresses(app: FastifyInstance, max: number): void {
  const limit = app.createRateLimit({ max, keyGenerator: byAddress('address') })
  app.addHook('onRequest', async (request) => {
    const { url } = request.routeOptions
    if (!request.is404 && url?.startsWith('/v1/') !== true) return
    const counted = await limit(request)
    if (!counted.isAllowed && counted.isExceeded) throw tooMany(counted.ttl)
  })
}
