/**
 * Authentication and authorization of routes.
 *
 * Owns: the scope that every route declares, and the hook that enforces it.
 * Law: every route declares a scope. The process does not start if one does not.
 */
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { SignedIn } from '#auth/sign-in.ts'
import { AppError } from '#errors.ts'
import { InvariantError, unreachable } from '#lib/assert.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Scope } from '#model/api-key.ts'
import { apiKeyPattern } from '#model/patterns.ts'
import { type Role, scopesOfRole } from '#model/person.ts'
import { isPerson, type PersonPrincipal, type Principal } from '#model/principal.ts'
import { accountSuspended } from '../../resources/accounts.ts'
import { consolePrefix } from '../pages/console.ts'
import { referencePrefix } from '../pages/reference-page.ts'
import { requireReach } from './key-limits.ts'

/** Scopes of routes that an access token opens. */
type TokenScope = 'admin' | 'metrics' | 'query' | 'any'

/**
 * - `admin`, `metrics`, `query`: an access token of that scope (admin holds every scope of the management API)
 * - `any`: any valid access token
 * - `owner`: a session of the console, of an owner of the account
 * - `person`: a session of the console
 * - `operator`: the operator token, or a session of the console of a person who is an operator
 * - `public`: no credentials
 */
export type RouteScope = TokenScope | 'owner' | 'person' | 'operator' | 'public'

declare module 'fastify' {
  interface FastifyContextConfig {
    scope?: RouteScope
  }
  interface FastifyRequest {
    /** Set by the authentication hook on every route whose scope is `admin`, `metrics`, `query`, `any` or `owner`. */
    principal: Principal
    /** Set by the authentication hook on calls with a session. */
    signedIn: SignedIn | null
  }
}

/** Checks credentials; provided by the composition. */
export type Credentials = {
  /** Throws `unauthorized` for an invalid token. */
  readonly verifyToken: (token: string) => Promise<Principal>
  /** Compares in constant time. */
  readonly isOperatorToken: (token: string) => boolean
  /** The console's, which is that of the base URL. */
  readonly origin: string
  /** Returns whose session the cookies are; undefined if they are of none. */
  readonly findSession: (cookie: string) => Promise<SignedIn | undefined>
  readonly findRole: (person_id: string, account_id: string) => Promise<Role | undefined>
  readonly isSuspended: (account_id: string) => boolean
}

const sufficient: Record<TokenScope, readonly Scope[]> = {
  admin: ['admin'],
  metrics: ['admin', 'metrics'],
  query: ['admin', 'query'],
  any: ['admin', 'metrics', 'query', 'ingest'],
}

export function requireScopes(app: FastifyInstance): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const { method, url } = route
    // The plugins of pages declare no scopes.
    if (url.startsWith(referencePrefix) || url.startsWith(consolePrefix)) route.config = { scope: 'public', ...route.config }
    const { config } = route
    if (config?.scope === undefined) throw new InvariantError(`route ${String(method)} ${url} declares no scope`)
  })
}

export function authenticate(app: FastifyInstance, credentials: Credentials): void {
  app.decorateRequest('principal')
  app.decorateRequest('signedIn', null)
  app.addHook('onRequest', async (request, reply) => {
    await authorize(request, request.is404 ? 'public' : (request.routeOptions.config.scope ?? 'admin'), credentials)
    const { set_cookies = [] } = request.signedIn ?? {}
    if (set_cookies.length > 0) reply.header('set-cookie', set_cookies)
  })
}

async function authorize(request: FastifyRequest, scope: RouteScope, credentials: Credentials): Promise<void> {
  switch (scope) {
    case 'public':
      return
    case 'person':
      request.signedIn = await requireSession(request, credentials)
      return
    case 'operator':
      return requireOperator(request, credentials)
    case 'owner':
      request.principal = await personOf(request, credentials)
      requireOwner(request.principal)
      return requireActiveAccount(request, scope, credentials)
    case 'admin':
    case 'metrics':
    case 'query':
    case 'any':
      request.principal = hasSession(request)
        ? await personOf(request, credentials)
        : await credentials.verifyToken(bearerToken(request))
      requireScope(request.principal, scope)
      requireReach(request, request.principal)
      return requireActiveAccount(request, scope, credentials)
    default:
      unreachable(scope)
  }
}

function requireScope(principal: Principal, scope: TokenScope): void {
  if (principal.scopes.some((held) => sufficient[scope].includes(held))) return
  if (isPerson(principal)) throw new AppError('forbidden', `a ${principal.role} cannot do this: ask an owner of the account`)
  throw new AppError('forbidden', `this operation needs a token with scope ${sufficient[scope].join(' or ')}`)
}

function requireOwner(principal: PersonPrincipal): void {
  if (principal.role !== 'owner') throw new AppError('forbidden', 'only an owner of the account can do this')
}

function requireActiveAccount({ method, principal }: FastifyRequest, scope: RouteScope, { isSuspended }: Credentials): void {
  if (mayChange(method, scope) && isSuspended(principal.account_id)) throw accountSuspended()
}

/** A header that only a page of control itself can send with a cookie, so no other page can call in somebody's name (CSRF). */
export const accountHeader = 'inlet-account'

function hasSession({ headers }: FastifyRequest): boolean {
  return headers.authorization === undefined && headers[accountHeader] !== undefined
}

/** Browsers say from where a page calls, and no page can say otherwise (Fetch Metadata). Throws forbidden. */
export function refuseOtherPages({ headers }: FastifyRequest): void {
  const site = headers['sec-fetch-site']
  if (site === undefined || site === 'same-origin' || site === 'none') return
  throw new AppError('forbidden', 'another page cannot use this session')
}

/** Browsers name the origin of a page with each call that is not a GET of its own. Throws forbidden if it is not `own`; programs send none. */
export function refuseOtherOrigins({ headers: { origin } }: FastifyRequest, own: string): void {
  if (origin === undefined || origin === own) return
  throw new AppError('forbidden', `this page has another address than Inlet: open ${own}, or set INLET_BASE_URL to this address`)
}

async function requireSession(request: FastifyRequest, { findSession, origin }: Credentials): Promise<SignedIn> {
  const { cookie = '', [accountHeader]: account } = request.headers
  if (account === undefined) throw new AppError('unauthorized', `send the header ${accountHeader} with the cookie of a session`)
  refuseOtherPages(request)
  refuseOtherOrigins(request, origin)
  const session = await findSession(cookie)
  if (session === undefined) throw new AppError('unauthorized', 'your session has ended: sign in again')
  return session
}

/** The person of the session, in the account that the call names. */
async function personOf(request: FastifyRequest, credentials: Credentials): Promise<PersonPrincipal> {
  request.signedIn = await requireSession(request, credentials)
  const account_id = String(request.headers[accountHeader])
  const person_id = request.signedIn.person.id
  const role = isUuid(account_id) ? await credentials.findRole(person_id, account_id) : undefined
  if (role === undefined) throw new AppError('forbidden', 'you do not belong to this account')
  return { account_id, person_id, role, scopes: scopesOfRole[role] }
}

/** Whether an operation may change anything. Those that accept any token only read, even if they are a POST. */
export function isChange(method: string, scope: RouteScope): boolean {
  return changing.includes(scope) && method !== 'GET' && method !== 'HEAD'
}

const changing: readonly RouteScope[] = ['admin', 'owner', 'person', 'operator']

/** Whether an operation may change anything in the account of its caller. */
export function mayChange(method: string, scope: RouteScope): boolean {
  return scope !== 'operator' && scope !== 'person' && isChange(method, scope)
}

/** A credential of an account is not enough, whatever its scopes: what it opens spans all accounts. */
async function requireOperator(request: FastifyRequest, credentials: Credentials): Promise<void> {
  if (hasSession(request)) {
    request.signedIn = await requireSession(request, credentials)
    if (request.signedIn.person.is_operator) return
    throw new AppError('forbidden', 'only an operator of the installation can do this')
  }
  const token = bearerToken(request)
  if (credentials.isOperatorToken(token)) return
  // The audit trail names the caller.
  if (!apiKeyPattern.test(token)) request.principal = await credentials.verifyToken(token)
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
