import { expect, test } from 'vitest'
import { must } from './assert.ts'
import { explainJsonError } from './json.ts'

test.each([
  ['', 'unexpected end of JSON input'],
  ['nope', `unexpected token 'o', "nope"`],
  ['{"a":\n1,}', `expected double-quoted property name at line 2, column 3`],
  ['{"a" 1}', `expected ':' after property name at line 1, column 6`],
])('says where and why %j is not valid JSON', (text, message) => {
  expect(explainJsonError(errorOf(text))).toBe(message)
})

function errorOf(text: string): unknown {
  try {
    JSON.parse(text)
  } catch (error) {
    return must(error, 'an error')
  }
  throw new Error('it is valid')
}
