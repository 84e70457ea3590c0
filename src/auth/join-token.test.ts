import { expect, test } from 'vitest'
import { parseJoinToken, printJoinToken } from './join-token.ts'
import { newJoinToken } from './new-join-token.ts'
import { hashApiKey } from './secrets.ts'

const settings = { name: 'rack 4', region: 'fra', uses_max: 2, ttl: '1h30m' }
const pin = 'p'.repeat(43)

test('a new token is stored as a hash, with the time at which it expires', () => {
  const { secret, token } = newJoinToken(settings, 1_000)
  expect(token).toEqual({
    ...{ id: expect.any(String), name: 'rack 4', region: 'fra', uses_max: 2, expires_at: 5_401_000 },
    hash: hashApiKey(secret),
  })
  expect(newJoinToken(settings, 1_000).secret).not.toBe(secret)
})

test('what is printed is read again, with and without a pin', () => {
  const { secret } = newJoinToken(settings, 0)
  expect(parseJoinToken(printJoinToken(secret, undefined))).toEqual({ secret, pin: null })
  expect(parseJoinToken(printJoinToken(secret, pin))).toEqual({ secret, pin })
})

test.each(['', 'ing_join_x', `ing_live_${'a'.repeat(32)}`, `ing_join_${'a'.repeat(32)}.`, `ing_join_${'a'.repeat(32)}.${pin}.x`])(
  'rejects %j',
  (text) => {
    expect(parseJoinToken(text)).toBeUndefined()
  },
)
