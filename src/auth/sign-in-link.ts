/** One-time links into the console. The secret stands after `#`, which browsers never send: no log has it. */
import { newId } from '#model/id.ts'
import type { Role } from '#model/person.ts'
import { hashApiKey, randomText } from './secrets.ts'

const secretChars = 32

export type SignInLinkFor = {
  /** Person who signs in; null for somebody new. */
  readonly person_id: string | null
  readonly email: string | null
  /** The account to join, with the role; null for none. */
  readonly account_id: string | null
  readonly role: Role | null
  readonly makes_operator: boolean
  readonly created_by: string
  readonly lasts_ms: number
}

/** Returns a link to store, and its secret. */
export function newSignInLink({ lasts_ms, ...link }: SignInLinkFor, now: number) {
  const secret = randomText(secretChars)
  return { secret, link: { ...link, id: newId(), hash: hashApiKey(secret), expires_at: now + lasts_ms } }
}

/** `baseUrl` is that of control, without a slash at its end. */
export function signInUrl(baseUrl: string, secret: string): string {
  return `${baseUrl}/sign-in#link=${secret}`
}
