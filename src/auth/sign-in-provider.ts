/**
 * Signing in with an OpenID Connect provider.
 *
 * Owns: who may become a person by it, what is kept of its answers, and the checks that the library leaves out.
 * Does not own: the protocol, which is the library's.
 * Law: a person of a provider is its issuer and subject, never an e-mail address. Its tokens are not kept.
 */
import type { BetterAuthOptions } from 'better-auth'
import { genericOAuth } from 'better-auth/plugins'
import { decodeJwt } from 'jose'
import { AppError } from '#errors.ts'
import { providerId, providerUnreachable, type SignInOptions, type SignInProvider } from './sign-in.ts'

export function openIdProvider({ issuer, clientId, clientSecret, name }: SignInProvider) {
  return genericOAuth({
    config: [
      {
        ...{ providerId, clientId, clientSecret, name },
        discoveryUrl: `${withoutSlash(issuer)}/.well-known/openid-configuration`,
        scopes: ['openid', 'profile', 'email'],
        pkce: true,
        requireIdTokenVerification: true,
        // Another provider may give the same subject to somebody else.
        accountSubject: ({ tokens, profile }) =>
          `${withoutSlash(issuer)} ${provenSubject(tokens.idToken, profile.sub, clientId)}`,
      },
    ],
  })
}

/**
 * Returns the subject of the ID token, whose signature, issuer, audience, nonce and end the library checked: but it lets a response without
 * one pass, and one whose profile is somebody else's (OpenID Connect Core 1.0, 3.1.3.7 and 5.3.2). Throws for both.
 */
function provenSubject(idToken: string | undefined, profileSubject: unknown, clientId: string): string {
  if (idToken === undefined) throw new Error('the provider sent no ID token')
  const { sub, aud, azp } = decodeJwt(idToken)
  if (!sub) throw new Error('the ID token has no subject')
  if (profileSubject !== sub) throw new Error('the user info is not about the subject of the ID token')
  if (azp === undefined ? [aud].flat().length > 1 : azp !== clientId)
    throw new Error('the ID token was issued for another client')
  return sub
}

/** Throws unavailable if the provider was not found, or is another one than the setting says. */
export function requireProvider(
  { issuer, name }: SignInProvider,
  found: { readonly issuer?: string | undefined } | undefined,
): void {
  if (found === undefined) throw providerUnreachable(name)
  if (withoutSlash(found.issuer ?? '') === withoutSlash(issuer)) return
  const text = `${name} calls itself ${found.issuer}: the operator must set INLET_OIDC_ISSUER to that`
  throw new AppError('unavailable', text, { retryAfterSeconds: 60, cause: new Error('another issuer') })
}

/** Some providers end their name with a slash. */
function withoutSlash(url: string): string {
  return url.replace(/\/$/, '')
}

type User = NonNullable<BetterAuthOptions['user']>
type DatabaseHooks = NonNullable<BetterAuthOptions['databaseHooks']>

/** Lets the provider make a person only of somebody who was invited, or whom its setting admits. */
export function refuseUninvited({ refuseToJoin }: SignInOptions): NonNullable<User['validateUserInfo']> {
  return async ({ user, source }) => {
    if (source.action !== 'create-user') return
    const refusal = await refuseToJoin({ email: user.email ?? '', isEmailVerified: user.emailVerified === true })
    return refusal && { error: refusal }
  }
}

export function providerHooks({ join }: SignInOptions): DatabaseHooks {
  const noTokens = { accessToken: null, refreshToken: null, idToken: null }
  return {
    account: { create: { before: async (account) => ({ data: { ...account, ...noTokens } }) } },
    user: {
      create: {
        after: async ({ id, email, emailVerified }) => join(id, { email, isEmailVerified: emailVerified }),
      },
    },
  }
}
