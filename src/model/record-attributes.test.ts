import { expect, test } from 'vitest'
import { encodeAttributes } from './record-attributes.ts'

test('nothing is nothing', () => {
  expect(encodeAttributes(undefined, [])).toBe('')
})

test('an empty content type is one', () => {
  expect(encodeAttributes('', [])).toBe('{"content_type":""}')
})

test('names keep their order and all of their values', () => {
  const pairs = [
    ['b', '1'],
    ['a', '2'],
    ['b', '3'],
    ['b', '1'],
  ] as const
  expect(encodeAttributes('text/plain', pairs)).toBe(
    '{"content_type":"text/plain","user_properties":{"b":["1","3","1"],"a":"2"}}',
  )
})

test('any name is a name', () => {
  const pairs = ['__proto__', 'constructor', 'toString', '', '"', '\n', '😀'].map((name) => [name, 'x'] as const)
  const { user_properties } = JSON.parse(encodeAttributes(undefined, pairs))
  expect(Object.keys(user_properties)).toEqual(pairs.map(([name]) => name))
})
