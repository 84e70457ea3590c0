/**
 * The paths below `/auth` that lead to an OpenID Connect provider and back.
 *
 * Law: the library gets no setting from the caller but where to go afterwards, and that is a path of the console.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { providerId } from '#auth/sign-in.ts'
import { auditSignIn, type SignInAudit } from './sign-in-audit.ts'
import { sendAnswer, toWebRequest } from './sign-in-calls.ts'

type Urls = { readonly callbackURL: string; readonly errorCallbackURL: string }

const config = { scope: 'public' } as const

export function addProviderRoutes(app: FastifyInstance, audit: SignInAudit): void {
  const { signIn } = audit
  const begin = (request: FastifyRequest, path: string, urls: Urls) =>
    signIn.handle(toWebRequest(request, { path, body: { provider: providerId, disableRedirect: true, ...urls } }))
  app.post('/sign-in/provider', { config }, async (request, reply) => {
    const urls = { callbackURL: pathIn(request.body), errorCallbackURL: '/sign-in' }
    return sendAnswer(reply, await begin(request, '/auth/sign-in/social', urls))
  })
  app.post('/connect-provider', { config }, (request, reply) =>
    auditSignIn(audit, 'connectProvider', request, reply, async () =>
      sendAnswer(reply, await begin(request, '/auth/link-social', { callbackURL: '/me', errorCallbackURL: '/me' })),
    ),
  )
  app.get(`/callback/${providerId}`, { config, exposeHeadRoute: false }, (request, reply) =>
    auditSignIn(audit, 'signInByProvider', request, reply, async () =>
      sendAnswer(reply, await signIn.handle(toWebRequest(request))),
    ),
  )
}

/** Where to go after signing in: a path of the console, else its start. */
function pathIn(body: unknown): string {
  if (typeof body !== 'object' || body === null || !('to' in body) || typeof body.to !== 'string') return '/'
  const { to } = body
  const base = 'http://control'
  const url = to.startsWith('/') ? URL.parse(to, base) : null
  return url?.origin === base ? url.pathname + url.search : '/'
}
