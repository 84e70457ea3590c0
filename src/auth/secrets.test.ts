import { describe, expect, test } from 'vitest'
import { apiKeyPattern } from '#model/patterns.ts'
import { apiKeyOf, hashApiKey, newApiKey, newExternalId, secretsEqual } from './secrets.ts'

describe('newApiKey', () => {
  test('returns a key in the documented format, its visible prefix and its SHA-256', () => {
    const { secret, prefix, hash } = newApiKey()
    expect(secret).toMatch(apiKeyPattern)
    expect(secret.startsWith(prefix)).toBe(true)
    expect(prefix).toMatch(/^ing_live_[0-9A-Za-z]{4}$/)
    expect(hash).toMatch(/^[0-9a-f]{64}$/)
    expect(hash).toBe(hashApiKey(secret))
  })

  test('never repeats', () => {
    expect(new Set(Array.from({ length: 1000 }, () => newApiKey().secret)).size).toBe(1000)
  })

  test('uses every character equally often', () => {
    const keys = 4_000
    const counts = new Map<string, number>()
    for (let n = 0; n < keys; n += 1) {
      for (const character of newApiKey().secret.slice('ing_live_'.length)) {
        counts.set(character, (counts.get(character) ?? 0) + 1)
      }
    }
    const expected = (keys * 32) / 62
    const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
    expect(counts.size).toBe(62)
    // 61 degrees of freedom: above 131 once in a million runs. The biased `byte % 62` would exceed 500.
    expect(chiSquare).toBeLessThan(131)
  })
})

test('apiKeyOf returns the hash of an existing secret', () => {
  // From `printf ing_live_… | sha256sum`.
  expect(apiKeyOf(`ing_live_${'0'.repeat(32)}`)).toEqual({
    secret: `ing_live_${'0'.repeat(32)}`,
    prefix: 'ing_live_0000',
    hash: 'da87d701df118dfd22b7ce64a40570d61e886fa27c66091c5fb985bb3635a2fa',
  })
})

test('newExternalId returns a new id that IAM accepts', () => {
  expect(newExternalId()).toMatch(/^inlet-[0-9A-Za-z]{32}$/)
  expect(newExternalId()).not.toBe(newExternalId())
})

describe('secretsEqual', () => {
  test.each([
    ['a', 'a', true],
    ['', '', true],
    ['a', 'b', false],
    ['a', 'aa', false],
    ['secret', '', false],
    ['ß', 'ss', false],
  ])('%j and %j: %s', (a, b, equal) => {
    expect(secretsEqual(a, b)).toBe(equal)
  })
})
