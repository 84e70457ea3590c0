import { expect, test } from 'vitest'
import { isDecimalInteger } from './decimal-integer.ts'

test.each(['0', '5', '-5', '9007199254740993'])('%j is an integer', (text) => expect(isDecimalInteger(text)).toBe(true))

test.each(['', ' ', ' 5', '5 ', '+5', '-0', '05', '0x10', '1e2', '5.0', '5.', '1_000', '٥', '5\n', 'Infinity', 'NaN'])(
  '%j is none',
  (text) => expect(isDecimalInteger(text)).toBe(false),
)
