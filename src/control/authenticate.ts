/**
 * Authentication and authorization of routes.
 *
 * Owns: the scope that every route declares, and the hook that enforces it.
 * Law: every route declares a scope. The process does not start if one does not.
 */
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { AppError } from '#errors.ts'
import { InvariantError, unreachable } from '#lib/assert.ts'
import type { Principal, Scope } from '#model/api-key.ts'
import { apiKeyPattern } from '#model/patterns.ts'
import { referencePrefix } from './reference-page.ts'
import { accountSuspended } from './services/accounts.ts'

/**
 * - `admin`, `metrics`: an access token of that scope (admin holds every scope of the management API)
 * - `any`: any valid access token
 * - `operator`: the operator token
 * - `public`: no credentials
 */
export type RouteScope = 'admin' | 'metrics' | 'any' | 'operator' | 'public'

declare module 'fastify' {
  interface FastifyContextConfig {
    scope?: RouteScope
  }
  interface FastifyRequest {
    /** Set by the authentication hook on every route whose scope is `admin`, `metrics` or `any`. */
    principal: Principal
  }
}

/** Checks credentials; provided by the composition. */
export type Credentials = {
  /** Throws `unauthorized` for an invalid token. */
  readonly verifyToken: (token: string) => Promise<Principal>
  /** Compares in constant time. */
  readonly isOperatorToken: (token: string) => boolean
  readonly isSuspended: (account_id: string) => boolean
}

const sufficient: Record<'admin' | 'metrics' | 'any', readonly Scope[]> = {
  admin: ['admin'],
  metrics: ['admin', 'metrics'],
  any: ['admin', 'metrics', 'ingest'],
}

export function requireScopes(app: FastifyInstance): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const { method, url } = route
    // The plugin of the reference page declares no scopes.
    if (url.startsWith(referencePrefix)) route.config ??= { scope: 'public' }
    const { config } = route
    if (config?.scope === undefined) throw new InvariantError(`route ${String(method)} ${url} declares no scope`)
  })
}

export function authenticate(app: FastifyInstance, credentials: Credentials): void {
  app.decorateRequest('principal')
  app.addHook('onRequest', async (request) => {
    const scope = request.is404 ? 'public' : (request.routeOptions.config.scope ?? 'admin')
    switch (scope) {
      case 'public':
        return
      case 'operator':
        return requireOperator(request, credentials)
      case 'admin':
      case 'metrics':
      case 'any':
        request.principal = await credentials.verifyToken(bearerToken(request))
        if (!request.principal.scopes.some((held) => sufficient[scope].includes(held))) {
          throw new AppError('forbidden', `this operation needs a token with scope ${sufficient[scope].join(' or ')}`)
        }
        if (mayChange(request.method, scope) && credentials.isSuspended(request.principal.account_id)) throw accountSuspended()
        return
      default:
        unreachable(scope)
    }
  })
}

/** Whether an operation may change anything. Those that accept any token only read, even if they are a POST. */
export function isChange(method: string, scope: RouteScope): boolean {
  return (scope === 'admin' || scope === 'operator') && method !== 'GET' && method !== 'HEAD'
}

/** Whether an operation may change anything in the account of its caller. */
export function mayChange(method: string, scope: RouteScope): boolean {
  return scope === 'admin' && isChange(method, scope)
}

/** A credential of an account is not enough, whatever its scopes: what it opens spans all accounts. */
async function requireOperator(request: FastifyRequest, { isOperatorToken, verifyToken }: Credentials): Promise<void> {
  const token = bearerToken(request)
  if (isOperatorToken(token)) return
  // The audit trail names the caller.
  if (!apiKeyPattern.test(token)) request.principal = await verifyToken(token)
  throw new AppError('forbidden', 'this operation needs the operator token, not a credential of an account')
}

/** RFC 6750 §2.1. */
export function bearerToken({ headers }: FastifyRequest): string {
  const [scheme = '', token = '', ...rest] = (headers.authorization ?? '').split(' ')
  if (scheme.toLowerCase() !== 'bearer' || token === '' || rest.length > 0) {
    throw new AppError('unauthorized', 'send the header Authorization: Bearer <access token>')
  }
  return token
}
