import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { decodeEnvelope, encodeEnvelope, groupProperties } from './record-envelope.ts'

test('an envelope is JSON of the fields that are set', () => {
  expect(Buffer.from(encodeEnvelope({ protocol: 'http' })).toString()).toBe('{"protocol":"http"}')
})

test('an envelope round-trips, with fields that a later protocol adds', () => {
  const envelope = { protocol: 'coap', topic: 'küche/"1"', content_type: '', later: [1] }
  expect(decodeEnvelope(encodeEnvelope(envelope))).toEqual(envelope)
})

test.each(['', 'null', '[]', '{}', '{"protocol":1}', '{"protocol":"mqtt","topic":7}', '\xff'])(
  '%j is not an envelope',
  (text) => {
    expect(() => decodeEnvelope(Buffer.from(text, 'latin1'))).toThrow()
  },
)

test('properties keep the order of their names and all values', () => {
  const pairs = [
    ['b', '1'],
    ['a', '2'],
    ['b', '3'],
    ['b', '1'],
  ] as const
  expect(JSON.stringify(groupProperties(pairs))).toBe('{"b":["1","3","1"],"a":"2"}')
})

test('any property name survives the round trip', () => {
  const pairs = ['__proto__', 'constructor', 'toString', '', '"', '\n', '😀'].map((name) => [name, 'x'] as const)
  const { user_properties } = decodeEnvelope(encodeEnvelope({ protocol: 'mqtt', user_properties: groupProperties(pairs) }))
  expect(Object.keys(user_properties ?? {})).toEqual(pairs.map(([name]) => name))
})
