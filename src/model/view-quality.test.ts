import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { qualityLimits } from './limits.ts'
import { orderOfPrinted } from './types/column-type.ts'
import { byBytes } from './types/orders.ts'
import { addQualities, noQuality, type QualitySum } from './view-quality.ts'

const compareValues = (type: string, one: string, other: string) => (orderOfPrinted(type) ?? byBytes).compare(one, other)

describe('values are compared by type', () => {
  test.each([
    ['BIGINT', '-9223372036854775808', '-9223372036854775807', '-1', '0', '9', '10', '9007199254740992', '9007199254740993'],
    ['UHUGEINT', '0', '99999999999999999999999999999999999998', '99999999999999999999999999999999999999'],
    ['DECIMAL(6,2)', '-10.00', '-9.99', '-0.01', '0.00', '9.50', '10.00'],
    ['DOUBLE', '-Infinity', '-1e+300', '-2', '0', '1e-7', '0.5', '10', '1e+21', 'Infinity'],
    [
      'DATE',
      '-290308-12-22',
      '-000043-03-15',
      '0000-12-31',
      '0001-01-01',
      '1969-12-31',
      '9999-12-31',
      '+010000-01-01',
      '+5881580-07-10',
    ],
    [
      'TIMESTAMP',
      '-000001-01-01T00:00:00.000000Z',
      '1969-12-31T23:59:59.000000Z',
      '1969-12-31T23:59:59.500000Z',
      '+012000-01-01T00:00:00.000000Z',
    ],
    ['TIMESTAMPTZ', '1970-01-01T00:00:00.000000Z', '1970-01-01T00:00:00.000001Z'],
    ['TIME', '00:00:00', '00:00:00.5', '00:00:01', '23:59:59.999999'],
    ['VARCHAR', '', 'Z', 'a', 'a\0', 'aa', 'é', '\uffff', '\u{10000}'],
    ['BOOLEAN', 'false', 'true'],
  ])('%s', (type, ...ascending) => {
    for (const [at, one] of ascending.entries()) {
      for (const [bt, other] of ascending.entries()) expect(Math.sign(compareValues(type, one, other))).toBe(Math.sign(at - bt))
    }
  })

  test('comparing any text returns a number', () => {
    const type = fc.constantFrom('BIGINT', 'DECIMAL(4,2)', 'DOUBLE', 'DATE', 'TIMESTAMP', 'VARCHAR', 'JSON', 'no type')
    fc.assert(
      fc.property(type, fc.string(), fc.string(), (type, one, other) => {
        expect(Number.isFinite(compareValues(type, one, other))).toBe(true)
      }),
    )
  })
})

describe('addQualities', () => {
  const paths = (from: number, count: number, at = '2026-11-20T08:00:00.000Z'): QualitySum => ({
    ...noQuality,
    sampled_records: count,
    unmapped: Array.from({ length: count }, (_, index) => ({
      ...{ path: `$.p${from + index}`, types: ['integer' as const], records: 1, last_seen_at: at },
    })),
  })

  test('keeps the most frequent paths, and when they were last seen', () => {
    const later = '2026-11-20T08:05:00.000Z'
    const { unmapped, sampled_records } = addQualities([paths(0, 90, later), paths(89, 90), paths(89, 1)])
    expect(sampled_records).toBe(181)
    expect(unmapped).toHaveLength(qualityLimits.pathsKeptMax)
    expect(unmapped[0]).toEqual({ path: '$.p89', types: ['integer'], records: 3, last_seen_at: later })
  })

  test('returns no quality for no input', () => {
    expect(addQualities([])).toEqual(noQuality)
    expect(addQualities([noQuality, noQuality])).toEqual(noQuality)
  })

  test('ignores columns of another type', () => {
    const column = { name: 'a', values: 1, nulls: 0, cast_nulls: 0, cast_dlq: 0, missing: 0, min: '1', max: '1' }
    const [one, other] = [
      { ...noQuality, columns: [{ ...column, type: 'BIGINT' }] },
      { ...noQuality, columns: [{ ...column, type: 'DATE' }] },
    ]
    expect(addQualities([one, other])).toEqual(one)
  })

  test('adds columns that only one of them has: a hidden column is there if it failed', () => {
    const of = (name: string, cast_nulls: number) => ({
      ...{ name, type: 'BIGINT', values: 0, nulls: 0, cast_nulls, cast_dlq: 0, missing: 0, min: null, max: null },
    })
    const sums = [[of('a', 1)], [of('b', 2), of('a', 4)], [of('b', 8), of('c', 16)]].map((columns) => ({ ...noQuality, columns }))
    expect(addQualities(sums).columns).toEqual([of('a', 5), of('b', 10), of('c', 16)])
    expect(addQualities(sums.toReversed()).columns.toSorted((x, y) => (x.name < y.name ? -1 : 1))).toEqual(
      addQualities(sums).columns,
    )
  })
})
