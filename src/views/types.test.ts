import { describe, expect, test } from 'vitest'
import { parseType, printType, storedType, TypeProblem } from './types.ts'

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

  test('integers of 128 bits are stored as decimals, which every reader of Parquet has', () => {
    expect(printType(storedType(parseType('HUGEINT')))).toBe('DECIMAL(38,0)')
    expect(printType(storedType(parseType('UHUGEINT[]')))).toBe('DECIMAL(38,0)[]')
    expect(printType(storedType(parseType('DECIMAL(9,2)')))).toBe('DECIMAL(9,2)')
  })

  test.each([
    ['', 'is no type'],
    ['MONEY', 'use one of BOOLEAN'],
    ['constructor', 'is no type'],
    ['STRUCT(a INT)', 'is no type'],
    ['MAP(INT, INT)', 'is no type'],
    ['INTEGER[3]', 'is no type'],
    ['INTERVAL', 'is no type'],
    ['BIGINT; DROP TABLE x', 'is no type'],
    ['VARCHAR)', 'is no type'],
    ['VARCHAR COLLATE NOCASE', 'is no type'],
    ['VARCHAR(10)', 'only DECIMAL takes'],
    ['DECIMAL(0,0)', 'precision of 1 to 38'],
    ['DECIMAL(39,0)', 'precision of 1 to 38'],
    ['DECIMAL(5,6)', 'precision of 1 to 38'],
    ['INTEGER[][][][][]', 'nested 4 deep'],
    ['a '.repeat(5000), 'is no type'],
  ])('%s is refused', (text, message) => {
    expect(() => parseType(text)).toThrow(TypeProblem)
    expect(() => parseType(text)).toThrow(message)
  })
})
