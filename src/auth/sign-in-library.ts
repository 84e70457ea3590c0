/**
 * Signing in, by better-auth.
 *
 * Owns: how the library is set up, and the operations that it lacks.
 * Law: nobody becomes a person by themselves. A person comes from a link, or from a provider that the operator trusts.
 */
import { type PasskeyOptions, passkey } from '@better-auth/passkey'
import { type BetterAuthOptions, betterAuth } from 'better-auth'
import { APIError, createAuthEndpoint, createAuthMiddleware, sensitiveSessionMiddleware } from 'better-auth/api'
import { setSessionCookie } from 'better-auth/cookies'
import { z } from 'zod'
import { AppError } from '#errors.ts'
import { signInLimits } from '#model/limits.ts'
import { Email, PersonName } from '#model/person.ts'
import { hashApiKey } from './secrets.ts'
import { clientAddressHeader, providerId, type SignIn, type SignInOptions } from './sign-in.ts'
import { openIdProvider, providerHooks, refuseUninvited, requireProvider } from './sign-in-provider.ts'

const { sessionSeconds, sessionExtendedAfterSeconds, passwordChars } = signInLimits
const Password = z.string().min(passwordChars.min, `must have at least ${passwordChars.min} characters`).max(passwordChars.max)

/** How the library's records are kept in the tables of the store. */
const tables = {
  session: {
    modelName: 'sessions',
    fields: {
      userId: 'person_id',
      expiresAt: 'expires_at',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
      ipAddress: 'ip_address',
      userAgent: 'user_agent',
    },
    expiresIn: sessionSeconds,
    updateAge: sessionExtendedAfterSeconds,
  },
  account: {
    // An e-mail address proves nothing: whoever has it here first may have typed it. People connect the provider in their profile.
    accountLinking: { disableImplicitLinking: true, allowDifferentEmails: true, trustedProviders: [providerId] },
    updateAccountOnSignIn: false,
    modelName: 'sign_ins',
    fields: {
      userId: 'person_id',
      providerId: 'provider',
      accountId: 'subject',
      accessToken: 'access_token',
      refreshToken: 'refresh_token',
      idToken: 'id_token',
      accessTokenExpiresAt: 'access_token_expires_at',
      refreshTokenExpiresAt: 'refresh_token_expires_at',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
    },
  },
  verification: {
    modelName: 'verifications',
    fields: { expiresAt: 'expires_at', createdAt: 'created_at', updatedAt: 'updated_at' },
  },
} satisfies BetterAuthOptions

/** Throws unavailable if the provider does not describe itself, or as another one. */
export async function openSignIn(options: SignInOptions): Promise<SignIn> {
  const { baseUrl, database, secret, provider, warnings } = options
  const { hostname, origin } = new URL(baseUrl)
  const auth = betterAuth({
    appName: 'Inlet',
    baseURL: origin,
    basePath: '/auth',
    secret,
    ...tables,
    trustedOrigins: [origin],
    // As SQLite on Postgres too, so that both databases keep the same values: ISO 8601 text, 0 and 1.
    database: { db: database, type: 'sqlite' } as NonNullable<BetterAuthOptions['database']>,
    telemetry: { enabled: false },
    onAPIError: { errorURL: `${origin}/sign-in` },
    // Requests are counted by control, over all its processes.
    rateLimit: { enabled: false },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: passwordChars.min,
      maxPasswordLength: passwordChars.max,
    },
    user: {
      modelName: 'people',
      fields: { emailVerified: 'email_verified', createdAt: 'created_at', updatedAt: 'updated_at' },
      additionalFields: { isOperator: { type: 'boolean', input: false, defaultValue: false, fieldName: 'is_operator' } },
      validateUserInfo: refuseUninvited(options),
    },
    advanced: {
      cookiePrefix: 'inlet',
      // The migrations of the store make the tables.
      database: { generateId: () => crypto.randomUUID(), validateSchema: false },
      ipAddress: { ipAddressHeaders: [clientAddressHeader] },
      useSecureCookies: origin.startsWith('https:'),
    },
    logger: {
      // Its errors are mostly those of callers, who could fill the log. Its failures are logged by control, with their response.
      log: (_level, message, ...rest) => warnings.warn(`sign-in: ${message.split(':', 1)}`, { rest }, `sign-in: ${message}`),
    },
    databaseHooks: providerHooks(options),
    hooks: { after: endReplacedSession },
    plugins: [
      links(options),
      passkey({ rpID: hostname, rpName: 'Inlet', origin, schema: passkeySchema, ...verifiedPasskeys }),
      ...(provider === null ? [] : [openIdProvider(provider)]),
    ],
  })
  if (provider !== null) requireProvider(provider, (await auth.$context).socialProviders[0])
  return {
    handle: (request) => auth.handler(request),
    async find(cookie) {
      const { response: found, headers } = await auth.api.getSession({ headers: new Headers({ cookie }), returnHeaders: true })
      if (found === null) return undefined
      const { session, user } = found
      const { id, name, email, isOperator } = user
      const person = { id, name, email, is_operator: isOperator === true }
      return { session_id: session.id, expires_at: session.expiresAt, set_cookies: headers.getSetCookie(), person }
    },
  }
}

/** The cookie of a new session replaces that of the one before, which nobody could end any more. */
const endReplacedSession = createAuthMiddleware(async ({ context, getSignedCookie }) => {
  const { newSession, authCookies, secret, internalAdapter } = context
  if (newSession === null) return
  const replaced = await getSignedCookie(authCookies.sessionToken.name, secret)
  if (replaced && replaced !== newSession.session.token) await internalAdapter.deleteSession(replaced)
})

/** A passkey is all that somebody needs, so it must ask for a finger, a face or a code: a lost key opens nothing. */
const verifiedPasskeys: PasskeyOptions = {
  authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  registration: {
    afterVerification: async ({ verification }) => requireUserVerified(verification.registrationInfo?.userVerified),
  },
  authentication: {
    afterVerification: async ({ verification }) => requireUserVerified(verification.authenticationInfo.userVerified),
  },
}

function requireUserVerified(isVerified: boolean | undefined): void {
  if (isVerified !== true)
    throw new APIError('UNAUTHORIZED', {
      message: 'this passkey did not check who you are: use one that asks for a PIN or a finger',
    })
}

const passkeySchema = {
  passkey: {
    modelName: 'passkeys',
    fields: {
      userId: 'person_id',
      publicKey: 'public_key',
      credentialID: 'credential_id',
      deviceType: 'device_type',
      backedUp: 'backed_up',
      createdAt: 'created_at',
    },
  },
} as const

/** The library answers only errors of its own. */
function refuse(error: unknown): never {
  if (error instanceof AppError)
    throw new APIError(error.code === 'conflict' ? 'CONFLICT' : 'FORBIDDEN', { message: error.message })
  throw error
}

/** Operations that the library lacks: signing in by a link, and completing what a link made. */
function links({ useLink }: SignInOptions) {
  const UseLink = z.strictObject({ link: z.string().min(1).max(signInLimits.linkChars), name: PersonName.optional() })
  const SetUp = z.strictObject({ name: PersonName.optional(), email: Email.optional(), password: Password.optional() })
  return {
    id: 'links',
    endpoints: {
      signInByLink: createAuthEndpoint('/sign-in/link', { method: 'POST', body: UseLink }, async (context) => {
        const { internalAdapter } = context.context
        const used = await useLink(hashApiKey(context.body.link), context.body.name).catch(refuse)
        const user = used && (await internalAdapter.findUserById(used.person_id))
        if (!user) throw new APIError('UNAUTHORIZED', { message: 'this link was used already, or is too old: ask for a new one' })
        const session = await internalAdapter.createSession(user.id)
        await setSessionCookie(context, { session, user })
        return context.json({ person_id: user.id })
      }),
      setUp: createAuthEndpoint(
        '/set-up',
        { method: 'POST', body: SetUp, use: [sensitiveSessionMiddleware] },
        async (context) => {
          const { internalAdapter, password: hashing } = context.context
          const { user } = context.context.session
          const { name, email, password } = context.body
          if (email !== undefined && email !== user.email) {
            const other = await internalAdapter.findUserByEmail(email)
            if (other !== null) throw new APIError('CONFLICT', { message: 'somebody else has this e-mail address' })
          }
          if (password !== undefined) {
            if ((await internalAdapter.findCredentialAccount(user.id)) !== null)
              throw new APIError('CONFLICT', { message: 'you have a password already: change it with the old one' })
            const hash = await hashing.hash(password)
            await internalAdapter.linkAccount({ userId: user.id, providerId: 'credential', accountId: user.id, password: hash })
          }
          const changedEmail = email === undefined ? {} : { email, emailVerified: email === user.email && user.emailVerified }
          const change = { ...(name === undefined ? {} : { name }), ...changedEmail }
          if (Object.keys(change).length > 0) await internalAdapter.updateUser(user.id, change)
          return context.json({ person_id: user.id })
        },
      ),
    },
  } as const
}
