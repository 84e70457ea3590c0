import { describe, expect, test } from 'vitest'
import { ColumnTypeError, orderOf, orderOfPrinted, parseType, printType, storedType } from './column-type.ts'
import { descriptors, type TypeDescriptor } from './descriptors.ts'

describe('types', () => {
  test.each([
    ['BIGINT', 'BIGINT'],
    [' bigint ', 'BIGINT'],
    ['Int', 'INTEGER'],
    ['text', 'VARCHAR'],
    ['string[]', 'VARCHAR[]'],
    ['bool', 'BOOLEAN'],
    ['numeric(5)', 'DECIMAL(5,0)'],
    ['DECIMAL', 'DECIMAL(18,3)'],
    ['DECIMAL(18,2)', 'DECIMAL(18,2)'],
    ['decimal ( 38 , 38 )', 'DECIMAL(38,38)'],
    ['DECIMAL(10,2)[]', 'DECIMAL(10,2)[]'],
    ['INTEGER[][]', 'INTEGER[][]'],
    ['timestamp  with time zone', 'TIMESTAMPTZ'],
    ['UUID [ ] [ ]', 'UUID[][]'],
  ])('%s is %s', (text, canonical) => {
    expect(printType(parseType(text))).toBe(canonical)
  })

  test.each(Object.entries<TypeDescriptor>(descriptors))(
    '%s and its aliases can be parsed, and what is printed has its order',
    (name, type) => {
      for (const spelling of [name, ...(type.aliases ?? [])])
        expect(parseType(spelling)).toMatchObject({ scalar: name, depth: 0 })
      const printed = printType(parseType(name))
      expect(printType(parseType(printed))).toBe(printed)
      expect(orderOf(parseType(name))).toBe(type.order)
      expect(orderOfPrinted(printed)).toBe(type.order)
    },
  )

  test('128-bit integers are stored as decimals, which every Parquet reader supports', () => {
    expect(printType(storedType(parseType('HUGEINT')))).toBe('DECIMAL(38,0)')
    expect(printType(storedType(parseType('UHUGEINT[]')))).toBe('DECIMAL(38,0)[]')
    expect(printType(storedType(parseType('DECIMAL(9,2)')))).toBe('DECIMAL(9,2)')
  })

  test.each([
    ['', 'unknown type'],
    ['MONEY', 'use one of BOOLEAN'],
    ['constructor', 'unknown type'],
    ['STRUCT(a INT)', 'use a column for each field, or one JSON column'],
    ['MAP(INT, INT)', 'use a column for each field, or one JSON column'],
    ['INTEGER[3]', 'use a list such as INTEGER[]'],
    ['INTERVAL', 'use BIGINT for a number of seconds'],
    ["ENUM('a', 'b')", 'use VARCHAR'],
    ['TIMETZ', 'use VARCHAR'],
    ['timestamp_ns', 'use TIMESTAMP'],
    ['BIT', 'use VARCHAR or BLOB'],
    ['BIGINT; DROP TABLE x', 'unknown type'],
    ['VARCHAR)', 'unknown type'],
    ['VARCHAR COLLATE NOCASE', 'unknown type'],
    ['VARCHAR(10)', 'only DECIMAL takes precision and scale: use VARCHAR'],
    ['DECIMAL(0,0)', 'use a precision of 1 to 38'],
    ['DECIMAL(39,0)', 'use a precision of 1 to 38'],
    ['DECIMAL(5,6)', 'use a precision of 1 to 38'],
    ['INTEGER[][][][][]', 'nested at most 4 deep'],
    ['a '.repeat(5000), 'unknown type'],
  ])('rejects %s', (text, message) => {
    expect(() => parseType(text)).toThrow(ColumnTypeError)
    expect(() => parseType(text)).toThrow(message)
  })
})
