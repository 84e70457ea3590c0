import { createHash, timingSafeEqual } from 'node:crypto'
import { type Random, systemRandom } from '#lib/random.ts'

/** A new key. The prefix and the hash are stored; the secret is returned to the caller once. */
export type NewApiKey = {
  readonly secret: string
  /** Identifies the key to people. */
  readonly prefix: string
  /** SHA-256, lowercase hex. A key has 190 random bits, so no slow hash is needed. */
  readonly hash: string
}

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const secretChars = 32
const keyStart = 'ing_live_'
const visibleChars = 4

/** Generates `ing_live_` and 32 random base62 characters. */
export function newApiKey(): NewApiKey {
  return apiKeyOf(keyStart + randomText(secretChars))
}

/** Returns the prefix and the hash of an existing secret. */
export function apiKeyOf(secret: string): NewApiKey {
  return { secret, prefix: secret.slice(0, keyStart.length + visibleChars), hash: hashApiKey(secret) }
}

export function hashApiKey(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Generates the external id that roles of an account require, so that other accounts cannot use them. */
export function newExternalId(): string {
  return `inlet-${randomText(secretChars)}`
}

/** Compares digests, so the time does not depend on the content or length of `b`. */
export function secretsEqual(a: string, b: string): boolean {
  return timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest())
}

/** Skips the highest bytes: their remainders would favour the first characters. */
export function randomText(length: number, random: Pick<Random, 'bytes'> = systemRandom): string {
  const end = 256 - (256 % base62.length)
  let text = ''
  while (text.length < length)
    for (const byte of random.bytes(length - text.length)) if (byte < end) text += base62.charAt(byte % base62.length)
  return text
}
