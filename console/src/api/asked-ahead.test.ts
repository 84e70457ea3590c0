import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { forgetAskedAhead, takeAskedAhead } from './asked-ahead.ts'

const answer = Promise.resolve(new Response('{}'))
const take = (method = 'GET', account = 'none', path = '/v1/session', nowMs = 300) => takeAskedAhead(method, account, path, nowMs)

beforeEach(() => vi.stubGlobal('window', { inletAskedAhead: new Map([['none /v1/session', answer]]) }))
afterEach(() => vi.unstubAllGlobals())

test('gives the answer to the first call that is the same', () => {
  expect(take()).toBe(answer)
  expect(take()).toBeUndefined()
})

test.each([
  ['a call that changes something', () => take('POST')],
  ['a call for another account', () => take('GET', 'acc_1')],
  ['a call of another path', () => take('GET', 'none', '/v1/endpoints')],
  ['a call that comes much later', () => take('GET', 'none', '/v1/session', 60_000)],
])('gives nothing to %s', (_what, call) => {
  expect(call()).toBeUndefined()
})

test('gives nothing once somebody signs in', () => {
  forgetAskedAhead()
  expect(take()).toBeUndefined()
})
