import { expect, test } from 'vitest'
import { keptHeaderLimits } from '#model/limits.ts'
import { decodeEnvelope, encodeEnvelope } from '#model/record-envelope.ts'
import { keptHeadersOf } from './kept-headers.ts'

test('only headers on the list are kept, whatever their names', () => {
  const headers = Object.assign(Object.create(null), {
    'x-event': 'push',
    authorization: 'Bearer secret',
    ['__proto__']: 'p',
    'x-list': ['1', '2'],
  })
  const kept = keptHeadersOf(headers, ['x-event', '__proto__', 'x-list', 'constructor', 'x-absent'])
  const envelope = decodeEnvelope(encodeEnvelope({ protocol: 'http', ...(kept === undefined ? {} : { headers: kept }) }))
  expect(JSON.stringify(envelope.headers)).toBe('{"x-event":"push","__proto__":"p","x-list":"1, 2"}')
})

test('the bound counts names and values of all', () => {
  const value = 'v'.repeat(keptHeaderLimits.bytesMax - 'a'.length - 'bb'.length - 1)
  expect(keptHeadersOf({ a: value, bb: '1' }, ['a', 'bb'])).toEqual({ a: value, bb: '1' })
  expect(() => keptHeadersOf({ a: value, bb: '12' }, ['a', 'bb'])).toThrow(/have 4097 bytes, more than the limit of 4096/)
})
