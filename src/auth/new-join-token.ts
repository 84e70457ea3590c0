import { must } from '#lib/assert.ts'
import { parseDurationSeconds } from '#model/duration.ts'
import { newId } from '#model/id.ts'
import type { CreateJoinToken } from '#model/join-token.ts'
import { hashApiKey, randomText } from './secrets.ts'

const secretChars = 32

/** Returns a token to store, and its secret, which is `ing_join_` and 32 random base62 characters. */
export function newJoinToken({ ttl, ...settings }: CreateJoinToken, now: number) {
  const secret = `ing_join_${randomText(secretChars)}`
  const expires_at = now + must(parseDurationSeconds(ttl), 'a duration') * 1000
  return { secret, token: { id: newId(), ...settings, hash: hashApiKey(secret), expires_at } }
}
