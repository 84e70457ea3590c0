import { expect, test } from 'vitest'
import { placeByte, placeError } from './error-place.ts'

const unknown = 'Catalog Error: Scalar Function with name cout does not exist!\nDid you mean "count"?'

test('a place that DuckDB shows', () => {
  expect(placeError(`${unknown}\n\nLINE 2:   cout(*)\n          ^`, 'SELECT city,\n  cout(*)\nFROM orders')).toEqual({
    message: 'Scalar Function with name cout does not exist! Did you mean "count"?',
    line: 2,
    column: 3,
  })
})

test('a place in a line that DuckDB cuts', () => {
  const sql = `SELECT ${'1, '.repeat(50)}nonesuch, ${'2, '.repeat(50)}3`
  const index = sql.indexOf('nonesuch')
  const excerpt = `...${sql.slice(index - 40, index + 30)}...`
  const shown = `Binder Error: no such column\n\nLINE 1: ${excerpt}\n${' '.repeat('LINE 1: ...'.length + 40)}^`
  expect(placeError(shown, sql)).toEqual({ message: 'no such column', line: 1, column: index + 1 })
})

test('an error without a place', () => {
  expect(placeError('Conversion Error: Could not convert', 'SELECT 1')).toEqual({ message: 'Could not convert' })
  expect(placeError('Binder Error: odd\n\nLINE 9: x\n        ^', 'SELECT 1')).toEqual({ message: 'odd' })
})

test('a byte after letters that are longer than a byte', () => {
  expect(placeByte('syntax error', "SELECT 'ü',\n FRM", 14)).toEqual({ message: 'syntax error', line: 2, column: 2 })
})
