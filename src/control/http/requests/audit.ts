/**
 * Records calls in the audit trail.
 *
 * Owns: that every operation that may change something is recorded, by hooks on its route. Does not own: how events are stored.
 * Law: hooks are added only to operations that may change something, so that reads cost nothing. A call that a rate limit
 * rejects is not recorded, nor anything else that happens before the credentials were checked.
 */
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { RevokedKeyError } from '#auth/access-tokens.ts'
import type { ErrorCode } from '#errors.ts'
import { isUuid } from '#lib/uuid.ts'
import { actorOf } from '../../resources/actor.ts'
import type { AuditedCall, AuditTrail } from '../../resources/audit-trail.ts'
import { isChange } from './authenticate.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the operation creates access that outlives the token of its caller. */
    grantsAccess?: boolean
    /** Returns the operation that the audit trail names, if that is not always the `operationId`. The query is not validated. */
    auditedAs?: (request: FastifyRequest) => string
  }
  interface FastifyRequest {
    /** Set once a call that may change something has passed the checks of its credentials. */
    auditedCall: AuditedCall | null
  }
}

/** Errors of the checks of credentials. */
const refusals: readonly ErrorCode[] = ['unauthorized', 'forbidden', 'account_suspended']

export function auditChanges(app: FastifyInstance, trail: AuditTrail): void {
  app.decorateRequest('auditedCall', null)
  app.addHook('onRoute', (route) => {
    if (isChange([route.method].flat()[0] ?? '', route.config?.scope ?? 'public')) record(route, trail)
  })
}

function record(route: RouteOptions, trail: AuditTrail): void {
  route.preParsing = first(route.preParsing, (request, _reply, _payload, done) => {
    request.auditedCall = beginCall(request, trail, 'operator')
    done()
  })
  route.preHandler = first(route.preHandler, (request, reply, done) => {
    if (request.auditedCall === null) done()
    else trail.within(request.auditedCall, () => reply.statusCode, done)
  })
  route.preSerialization = first(route.preSerialization, (request, _reply, payload, done) => {
    nameCreated(request, payload)
    done(null, payload)
  })
  route.onSend = first(route.onSend, (request, reply, payload, done) => {
    const { failure } = request
    const isRefusal = failure !== null && refusals.includes(failure.code)
    const call = request.auditedCall ?? (isRefusal ? beginCall(request, trail, 'unknown') : undefined)
    if (call === undefined) done(null, payload)
    else trail.finish(call, { status: reply.statusCode, error: failure?.code ?? null }).then(() => done(null, payload), done)
  })
}

/** Puts a hook before those that the route has. */
function first<Hook>(hooks: Hook | Hook[] | undefined, hook: Hook): Hook[] {
  return [hook, ...[hooks ?? []].flat()] as Hook[]
}

/** `other` is who calls without an access token. */
function beginCall(request: FastifyRequest, trail: AuditTrail, other: 'operator' | 'unknown'): AuditedCall {
  const { failure, ip, id, routeOptions, signedIn } = request
  const { auditedAs, grantsAccess } = routeOptions.config
  const principal = request.principal ?? (failure instanceof RevokedKeyError ? failure.principal : undefined)
  const named = Object.values(request.params as Record<string, string>).at(-1)
  const resource_id = isUuid(named) ? named.toLowerCase() : null
  const attempt = {
    actor: principal !== undefined ? actorOf(principal) : signedIn === null ? other : (`person:${signedIn.person.id}` as const),
    // Only the operator may put an event into the trail of another account.
    account_id: principal?.account_id ?? (other === 'operator' && isAccountRoute(request) ? resource_id : null),
    address: ip,
    operation: auditedAs?.(request) ?? routeOptions.schema?.operationId ?? routeOptions.url ?? '',
    resource_id,
    request_id: id,
  }
  return trail.begin(attempt, principal, grantsAccess)
}

/** Completes the attempt with the id of what was created. */
function nameCreated(request: FastifyRequest, payload: unknown): void {
  const { auditedCall: call } = request
  if (call === null || typeof payload !== 'object' || payload === null || !('id' in payload)) return
  if (typeof payload.id !== 'string') return
  call.attempt.resource_id = payload.id
  // An operation on an account that exists named it when it began.
  if (call.principal === undefined && isAccountRoute(request)) call.attempt.account_id ??= payload.id
  if (isInstallationRoute(request) && 'account_id' in payload && typeof payload.account_id === 'string')
    call.attempt.account_id = payload.account_id
}

/** The operator changes there what an account has. */
function isInstallationRoute({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url?.startsWith('/v1/installation') === true
}

function isAccountRoute({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url?.startsWith('/v1/accounts') === true
}
