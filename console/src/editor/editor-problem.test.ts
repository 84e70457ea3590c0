import { expect, test } from 'vitest'
import { rangeOf } from './editor-problem.ts'

const text = 'columns:\n  - { name: "a b", type: BIGNT }\n'
const at = (line: number, column: number) => {
  const { from, to } = rangeOf(text, { line, column, message: '', severity: 'error' })
  return text.slice(from, to)
}

test('the word at the place is underlined, a quoted one as a whole', () => {
  expect(at(1, 1)).toBe('columns:')
  expect(at(2, 13)).toBe('"a b"')
  expect(at(2, 26)).toBe('BIGNT')
})

test('a place outside of the text is moved inside', () => {
  expect(rangeOf(text, { line: 99, column: 99, message: '', severity: 'error' })).toEqual({ from: text.length, to: text.length })
  expect(rangeOf('', { line: 1, column: 1, message: '', severity: 'error' })).toEqual({ from: 0, to: 0 })
  expect(rangeOf('ab\ncd', { line: 1, column: 40, message: '', severity: 'error' })).toEqual({ from: 2, to: 3 })
})
