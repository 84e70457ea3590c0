import { createHash, randomInt, timingSafeEqual } from 'node:crypto'

/** A key and what may be kept of it: the secret is shown once. */
export type NewApiKey = {
  readonly secret: string
  /** To recognise it by. */
  readonly prefix: string
  /** SHA-256, lowercase hex. A key has 190 random bits, so no slow hash is needed. */
  readonly hash: string
}

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const secretChars = 32
const keyStart = 'ing_live_'
const visibleChars = 4

/** `ing_live_` and 32 random base62 characters. */
export function newApiKey(): NewApiKey {
  return apiKeyOf(keyStart + randomText(secretChars))
}

/** What is kept of a key that somebody else made. */
export function apiKeyOf(secret: string): NewApiKey {
  return { secret, prefix: secret.slice(0, keyStart.length + visibleChars), hash: hashApiKey(secret) }
}

export function hashApiKey(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** What a role demands of whoever assumes it for an account, so that no other account can name the role as its own. */
export function newExternalId(): string {
  return `inlet-${randomText(secretChars)}`
}

/** Takes as long for any `b`, also one of another length: it compares digests. */
export function secretsEqual(a: string, b: string): boolean {
  return timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest())
}

/** `randomInt` rejects what would favour the first characters; a remainder wouldn't. */
function randomText(length: number): string {
  let text = ''
  while (text.length < length) text += base62.charAt(randomInt(base62.length))
  return text
}
