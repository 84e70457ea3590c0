import { expect, test } from 'vitest'
import { parseJoinToken, printJoinToken } from './join-token.ts'

const secret = `ing_join_${'a'.repeat(32)}`
const pin = 'p'.repeat(43)

test('what is printed is read again, with and without a pin', () => {
  expect(parseJoinToken(printJoinToken(secret, undefined))).toEqual({ secret, pin: null })
  expect(parseJoinToken(printJoinToken(secret, pin))).toEqual({ secret, pin })
})

test.each(['', 'ing_join_x', `ing_live_${'a'.repeat(32)}`, `${secret}.`, `${secret}.${pin}.x`])('rejects %j', (text) => {
  expect(parseJoinToken(text)).toBeUndefined()
})
