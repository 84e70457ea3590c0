/**
 * The paths below `/auth`, by which the console signs people in.
 *
 * Owns: which operations of the library are open, and how often they may be tried. Does not own: what they do (`#auth/sign-in.ts`).
 * Law: an operation that is not in the list does not exist. They are for the console alone, and no part of the public API.
 */
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import type { SignInProvider } from '#auth/sign-in.ts'
import { signInLimits } from '#model/limits.ts'
import { refuseOtherOrigins, refuseOtherPages } from '../requests/authenticate.ts'
import { byAddress, tooMany } from '../requests/request-rates.ts'
import { auditSignIn, emailIn, type SignInAudit } from './sign-in-audit.ts'
import { sendAnswer, toWebRequest } from './sign-in-calls.ts'
import { addProviderRoutes } from './sign-in-provider.ts'

/** Routes with an operation name are recorded in the audit trail under it. */
const operations: readonly (readonly [method: 'GET' | 'POST', url: string, operation?: string])[] = [
  ['POST', '/sign-in/link', 'signInByLink'],
  ['POST', '/sign-in/email', 'signInByEmail'],
  ['POST', '/sign-out', 'signOut'],
  ['POST', '/set-up', 'changeProfile'],
  ['POST', '/change-password', 'changePassword'],
  ['GET', '/passkey/generate-register-options'],
  ['POST', '/passkey/verify-registration', 'addPasskey'],
  ['GET', '/passkey/generate-authenticate-options'],
  ['POST', '/passkey/verify-authentication', 'signInByPasskey'],
  ['GET', '/passkey/list-user-passkeys'],
  ['POST', '/passkey/delete-passkey', 'removePasskey'],
  ['GET', '/list-accounts'],
  ['POST', '/unlink-account', 'disconnectProvider'],
]

export type SignInRoutesOptions = {
  readonly audit: SignInAudit
  /** URL of control. */
  readonly baseUrl: string
  /** Null if people sign in by other ways only. */
  readonly provider: SignInProvider | null
  /** By address. */
  readonly triesPerMinute: number
}

export function signInRoutes({ audit, baseUrl, provider, triesPerMinute }: SignInRoutesOptions): FastifyPluginAsync {
  const { signIn } = audit
  const { origin } = new URL(baseUrl)
  return async (app) => {
    app.addHook('onRequest', app.rateLimit({ max: triesPerMinute, keyGenerator: byAddress('sign-in') }))
    const byEmail = app.createRateLimit({
      max: signInLimits.triesOfEmailPerMinute,
      keyGenerator: ({ body }) => `sign-in of ${emailIn(body)}`,
    })
    app.addHook('preHandler', async (request) => {
      if (request.method === 'POST') {
        refuseOtherPages(request)
        refuseOtherOrigins(request, origin)
      }
      if (emailIn(request.body) === undefined) return
      const counted = await byEmail(request)
      if (!counted.isAllowed && counted.isExceeded) throw tooMany(counted.ttl)
    })
    app.get('/ways', { config: { scope: 'public' } }, async ({ headers: { cookie } }, reply) => {
      const signedIn = cookie === undefined ? undefined : await signIn.find(cookie)
      if (signedIn !== undefined && signedIn.set_cookies.length > 0) reply.header('set-cookie', signedIn.set_cookies)
      return { provider: provider && { name: provider.name }, is_signed_in: signedIn !== undefined }
    })
    if (provider !== null) addProviderRoutes(app, audit)
    for (const [method, url, operation] of operations) {
      app.route({
        method,
        url,
        config: { scope: 'public' },
        exposeHeadRoute: false,
        handler: (request, reply) => {
          const call = url === '/change-password' ? endingOtherSessions(request) : undefined
          const run = async () => sendAnswer(reply, await signIn.handle(toWebRequest(request, call)))
          return operation === undefined ? run() : auditSignIn(audit, operation, request, reply, run)
        },
      })
    }
  }
}

/** Ends other sessions on a password change: somebody else may know the old password. */
function endingOtherSessions({ url: path, body }: FastifyRequest) {
  return { path, body: { ...Object(body), revokeOtherSessions: true } }
}
