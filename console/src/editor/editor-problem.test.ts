import { expect, test } from 'vitest'
import { pointedAt, rangeOf } from './editor-problem.ts'

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

test.each([
  [
    'in quotes',
    'columns:\n  - value: "round(emial * 2)"',
    { line: 2, column: 12 },
    'round(emial * 2)\n      ^',
    { line: 2, column: 19 },
  ],
  ['without quotes', '- value: round(emial)', { line: 1, column: 10 }, 'round(emial)\n      ^', { line: 1, column: 16 }],
  [
    'of a block',
    '- condition: |\n    a > 1\n    AND emial > 2\n',
    { line: 1, column: 14 },
    'AND emial > 2\n    ^',
    { line: 3, column: 9 },
  ],
  [
    'of a long line',
    `- value: ${'a + '.repeat(40)}emial`,
    { line: 1, column: 10 },
    '…a + emial\n     ^',
    { line: 1, column: 170 },
  ],
  ['with escapes', '- value: "a \\"emial\\""', { line: 1, column: 10 }, 'a "emial"\n  ^', { line: 1, column: 10 }],
  ['without an excerpt', '- value: a', { line: 1, column: 10 }, undefined, { line: 1, column: 10 }],
])('the caret of an expression %s is found in the text', (_, text, place, excerpt, found) => {
  expect(pointedAt(text, place, excerpt)).toEqual(found)
})
