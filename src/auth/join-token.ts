/**
 * The token with which a node joins: `<secret>`, or `<secret>.<pin>`. Control stores the hash of the secret. The pin names the root
 * certificate of control, so that a node can recognise control before it sends the secret.
 */
import { must } from '#lib/assert.ts'
import { parseDurationSeconds } from '#model/duration.ts'
import { newId } from '#model/id.ts'
import type { CreateJoinToken } from '#model/join-token.ts'
import { joinTokenPattern } from '#model/patterns.ts'
import { hashApiKey, randomText } from './secrets.ts'

const secretChars = 32

/** Returns a token to store, and its secret, which is `ing_join_` and 32 random base62 characters. */
export function newJoinToken({ ttl, ...settings }: CreateJoinToken, now: number) {
  const secret = `ing_join_${randomText(secretChars)}`
  const expires_at = now + must(parseDurationSeconds(ttl), 'a duration') * 1000
  return { secret, token: { id: newId(), ...settings, hash: hashApiKey(secret), expires_at } }
}

/** `pin` is undefined if nodes trust the certificate of control by themselves. */
export function printJoinToken(secret: string, pin: string | undefined): string {
  return pin === undefined ? secret : `${secret}.${pin}`
}

/** Returns undefined for anything else. */
export function parseJoinToken(text: string): { readonly secret: string; readonly pin: string | null } | undefined {
  if (!joinTokenPattern.test(text)) return undefined
  const [secret = '', pin = null] = text.split('.')
  return { secret, pin }
}
