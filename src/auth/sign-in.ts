/**
 * Signing in to the console: sessions, passwords, passkeys, one-time links.
 *
 * Owns: what control needs of it. Does not own: how it is done (`sign-in-library.ts`), who belongs to which account, what a link is good for.
 */
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { ThrottledWarnings } from '#lib/throttled-warnings.ts'

/** Person who signed in by a link. */
export type LinkUse = { readonly person_id: string }

/** An OpenID Connect provider that the operator trusts. */
export type SignInProvider = {
  /** URL; `/.well-known/openid-configuration` is below it. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** As people know it: it stands on the button. */
  readonly name: string
}

/** Somebody new, as the provider describes them. */
export type Newcomer = { readonly email: string; readonly isEmailVerified: boolean }

/** A code that the console puts into words. */
export type JoinRefusal = 'not_invited' | 'account_suspended'

export type SignInOptions = {
  /** Kysely on either database. */
  readonly database: object
  readonly baseUrl: string
  /** Signs cookies. */
  readonly secret: string
  /** Uses the link with this hash up, and returns the person that it is for, made by it if need be. Undefined if it is not valid. */
  readonly useLink: (hash: string, name: string | undefined) => Promise<LinkUse | undefined>
  readonly provider: SignInProvider | null
  /** For all that it does in one call. */
  readonly providerTimeoutMs: number
  readonly clock: Clock
  /** Why somebody whom the provider knows, and Inlet does not, may not become a person; undefined if they may. */
  readonly refuseToJoin: (newcomer: Newcomer) => Promise<JoinRefusal | undefined>
  /** Gives a new person the accounts that are meant for them. */
  readonly join: (person_id: string, newcomer: Newcomer) => Promise<void>
  readonly warnings: Pick<ThrottledWarnings, 'warn'>
}

/** The name of the provider in paths and rows. There is one. */
export const providerId = 'oidc'

/** A session that is valid now. */
export type SignedIn = {
  readonly session_id: string
  readonly expires_at: Date
  /** To send back: an extended session needs a cookie that lasts as long. */
  readonly set_cookies: readonly string[]
  readonly person: { readonly id: string; readonly name: string; readonly email: string; readonly is_operator: boolean }
}

export type SignIn = {
  /** Answers a request below `/auth`. */
  readonly handle: (request: Request) => Promise<Response>
  /** Returns whose session the cookies are, extending it now and then; undefined if they are of none. */
  readonly find: (cookie: string) => Promise<SignedIn | undefined>
}

/** Set by control to the address that it sees; what a client sends under this name is dropped. */
export const clientAddressHeader = 'x-inlet-client-address'

/** Not an error of Inlet, and whoever tries again would fill the log: the library warns of it. */
export function providerUnreachable(name: string): AppError {
  const text = `${name} does not respond: try again in a minute, or sign in another way`
  return new AppError('unavailable', text, { retryAfterSeconds: 60 })
}
