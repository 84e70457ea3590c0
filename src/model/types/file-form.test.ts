import { describe, expect, test } from 'vitest'
import { parseType } from './column-type.ts'
import { formProblem, inFile, typeInFile } from './file-form.ts'

describe('the type in a file', () => {
  test.each([
    ['UUID', 'VARCHAR'],
    ['TIME', 'VARCHAR'],
    ['JSON', 'VARCHAR'],
    ['UTINYINT', 'SMALLINT'],
    ['USMALLINT', 'INTEGER'],
    ['UINTEGER', 'BIGINT'],
    ['UBIGINT', 'DECIMAL(20,0)'],
    ['UHUGEINT', 'DECIMAL(38,0)'],
    ['TIMESTAMP', 'TIMESTAMPTZ'],
    ['TIMESTAMPTZ', 'TIMESTAMPTZ'],
    ['UUID[][]', 'VARCHAR[][]'],
    ['TIMESTAMP[]', 'TIMESTAMPTZ[]'],
    ['DECIMAL(9,2)[]', 'DECIMAL(9,2)[]'],
  ])('of %s is %s, which every engine reads', (type, stored) => {
    expect(typeInFile(parseType(type), undefined)).toBe(stored)
  })

  test.each([
    ['UUID', 'native', 'UUID'],
    ['TIME[]', 'native', 'TIME[]'],
    ['UBIGINT', 'native', 'UBIGINT'],
    ['JSON', 'native', 'JSON'],
    ['TIMESTAMP', 'naive', 'TIMESTAMP'],
  ] as const)('of %s is its own if the column asks for it', (type, asked, stored) => {
    expect(formProblem(parseType(type), asked)).toBeUndefined()
    expect(typeInFile(parseType(type), asked)).toBe(stored)
    expect(inFile('v', parseType(type), asked)).toBe('v')
  })

  test.each([
    ['BIGINT', 'native', 'must be left out for BIGINT: "native" is for UTINYINT, USMALLINT, UINTEGER, UBIGINT, TIME, UUID, JSON'],
    ['TIMESTAMP', 'native', 'must be left out for TIMESTAMP: "native" is for'],
    ['UUID', 'naive', 'must be left out for UUID: "naive" is for TIMESTAMP'],
    ['TIMESTAMPTZ', 'naive', 'must be left out for TIMESTAMPTZ'],
  ] as const)('of %s cannot be %s', (type, asked, problem) => {
    expect(formProblem(parseType(type), asked)).toContain(problem)
  })
})
