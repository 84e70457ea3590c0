import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import type { Column, Definition } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'
import { orderOfPrinted, parseType } from '#model/types/column-type.ts'
import { descriptors } from '#model/types/descriptors.ts'
import { boundCharsMax } from '#model/types/orders.ts'
import { addQualities, type ColumnQuality, toSum } from '#model/view-quality.ts'
import { MASK_COLUMNS } from '#views/extraction.ts'
import { decide } from '../../test/support/decide.ts'
import { queryRows } from '../../test/support/parquet.ts'
import { runs } from '../../test/support/thorough.ts'
import { canonicalText } from './column-quality.ts'

type Range = Pick<ColumnQuality, 'name' | 'values' | 'nulls' | 'min' | 'max'>

/** Computes the expected quality from the values in the file, with DuckDB. */
async function measureWithDuckDb(path: string, columns: readonly Column[]): Promise<readonly Range[]> {
  const selected = columns.flatMap(({ name, type }) => {
    const column = quoteIdentifier(name)
    const filter = /^(FLOAT|DOUBLE)$/.test(type) ? `FILTER (WHERE NOT isnan(${column}))` : ''
    const ends =
      orderOfPrinted(type) !== undefined
        ? ['min', 'max'].map((end) => `CAST(${end}(${column}) ${filter} AS VARCHAR)`)
        : ['CAST(NULL AS VARCHAR)', 'CAST(NULL AS VARCHAR)']
    return [`count(${column})`, `count(*) - count(${column})`, ...ends]
  })
  const sql = `SELECT ${selected.join(', ')} FROM read_parquet(${quoteLiteral(path)})`
  const { rows } = await queryRows(sql)
  return columns.map(({ name, type }, index) => {
    const [values, nulls, min, max] = (rows[0] ?? []).slice(4 * index)
    const text = (value: typeof min) => canonicalText(value, parseType(type))
    return { name, values: Number(values), nulls: Number(nulls), min: text(min), max: text(max) }
  })
}

async function compared(definition: Definition, records: readonly string[], beside: readonly Definition[] = []) {
  let expected: readonly Range[] | undefined
  const { quality, ...decided } = await decide(definition, records, beside, async (path) => {
    expected = await measureWithDuckDb(path, definition.columns)
  })
  const found = quality.columns.map(({ name, values, nulls, min, max }) => ({ name, values, nulls, min, max }))
  expect(found).toEqual(expected ?? definition.columns.map(({ name }) => ({ name, values: 0, nulls: 0, min: null, max: null })))
  return { quality, ...decided }
}

/** For tests that start DuckDB many times, or with many rows. */
const timeoutMs = 60_000

const column = (type: string, more: Partial<Column> = {}): Column => ({ name: 'v', type, path: '$.v', ...more })
const records = (values: readonly unknown[]) => values.map((v) => JSON.stringify({ v }))

const ranges: readonly (readonly [type: string, values: readonly unknown[], min: string | null, max: string | null])[] = [
  ['BOOLEAN', [true, false, null], 'false', 'true'],
  ['TINYINT', [5, -128, 127], '-128', '127'],
  ['UTINYINT', [255, 3], '3', '255'],
  ['SMALLINT', [-32768, 9], '-32768', '9'],
  ['USMALLINT', [65535, 9], '9', '65535'],
  ['INTEGER', [10, 9, -2147483648], '-2147483648', '10'],
  ['UINTEGER', ['4294967295', 7], '7', '4294967295'],
  [
    'BIGINT',
    ['9223372036854775807', '-9223372036854775808', '9223372036854775806'],
    '-9223372036854775808',
    '9223372036854775807',
  ],
  ['UBIGINT', ['18446744073709551615', '18446744073709551614'], '18446744073709551614', '18446744073709551615'],
  [
    'HUGEINT',
    ['99999999999999999999999999999999999999', '-99999999999999999999999999999999999998'],
    '-99999999999999999999999999999999999998',
    '99999999999999999999999999999999999999',
  ],
  ['UHUGEINT', ['1', '99999999999999999999999999999999999999'], '1', '99999999999999999999999999999999999999'],
  ['FLOAT', [0.1, 16777216, -1.5], '-1.5', '16777216'],
  ['FLOAT', [0.1, 3.4028235e38], '0.1', '3.4028235e+38'],
  ['FLOAT', ['nan', 1], '1', '1'],
  ['DOUBLE', ['nan', 0.1, '-inf', 1e300], '-Infinity', '1e+300'],
  ['DOUBLE', ['nan'], null, null],
  ['DOUBLE', ['-0.0'], '0', '0'],
  ['DECIMAL(4,2)', ['-1.05', '9.5'], '-1.05', '9.50'],
  ['DECIMAL(18,3)', ['10', '9.001', null], '9.001', '10.000'],
  [
    'DECIMAL(38,10)',
    ['-1234567890123456789012345678.0123456789', '-1234567890123456789012345678.0123456788'],
    '-1234567890123456789012345678.0123456789',
    '-1234567890123456789012345678.0123456788',
  ],
  ['VARCHAR', ['b', 'a\u0000', 'ü'], 'a\u0000', 'ü'],
  ['VARCHAR', ['\u{ffff}', '\u{10000}'], '\u{ffff}', '\u{10000}'],
  ['VARCHAR', ['z'.repeat(400), `${'é'.repeat(300)}`, 'y'], 'y', 'é'.repeat(64)],
  ['VARCHAR', ['😀'.repeat(65)], '😀'.repeat(64), '😀'.repeat(64)],
  ['VARCHAR', [`a${'\u{10ffff}'.repeat(400)}`], `a${'\u{10ffff}'.repeat(63)}`, `a${'\u{10ffff}'.repeat(63)}`],
  ['VARCHAR', ['\u007f'.repeat(400), 'x'], 'x', '\u007f'.repeat(64)],
  ['VARCHAR', [`ab\0${'x'.repeat(300)}`], `ab\0${'x'.repeat(61)}`, `ab\0${'x'.repeat(61)}`],
  ['VARCHAR', ['', null], '', ''],
  ['DATE', ['0044-03-15', '1969-12-31', '9999-12-31'], '0044-03-15', '9999-12-31'],
  ['DATE', ['0001-01-01', '0001-01-02'], '0001-01-01', '0001-01-02'],
  ['TIME', ['23:59:59.999999', '00:00:00'], '00:00:00', '23:59:59.999999'],
  ['TIMESTAMP', ['1969-12-31T23:59:59.5Z', '1969-12-31T23:59:59Z'], '1969-12-31T23:59:59.000000Z', '1969-12-31T23:59:59.500000Z'],
  [
    'TIMESTAMP',
    ['9999-12-31 23:59:59.999999', '0001-01-01 00:00:00'],
    '0001-01-01T00:00:00.000000Z',
    '9999-12-31T23:59:59.999999Z',
  ],
  [
    'TIMESTAMPTZ',
    ['2020-01-01T00:00:00+02:00', '2019-12-31T22:00:01Z'],
    '2019-12-31T22:00:00.000000Z',
    '2019-12-31T22:00:01.000000Z',
  ],
  [
    'UUID',
    ['ffffffff-7dec-11d0-a765-00a0c91e6bf6', '00000000-7DEC-11d0-a765-00a0c91e6bf6'],
    '00000000-7dec-11d0-a765-00a0c91e6bf6',
    'ffffffff-7dec-11d0-a765-00a0c91e6bf6',
  ],
  ['JSON', [{ a: 1 }, null, 2], null, null],
  ['BLOB', ['abc', null], null, null],
  ['INTEGER[]', [[1, null], [], null], null, null],
  ['VARCHAR[][]', [[['a'], null], [], null, null], null, null],
]

describe('nulls, minimum and maximum', () => {
  test('are tested for every type', () => {
    const covered = new Set(ranges.map(([type]) => parseType(type).scalar))
    expect(new Set(Object.keys(descriptors))).toEqual(covered)
  })

  test.each(ranges)('of %s match the values %j', async (type, values, min, max) => {
    const { quality } = await compared({ columns: [column(type)] }, records(values))
    const nulls = values.filter((value) => value === null).length
    expect(quality.columns).toEqual([
      { name: 'v', type, values: values.length - nulls, nulls, cast_nulls: 0, cast_dlq: 0, missing: 0, min, max },
    ])
  })

  test('are exact over many row groups, some with only nulls, some with NaN or infinity', { timeout: timeoutMs }, async () => {
    const columns = ['DOUBLE', 'BIGINT', 'VARCHAR', 'INTEGER[]', 'DECIMAL(18,3)'].map((type, index) => ({
      name: `c${index}`,
      type,
      path: `$.c${index}`,
    }))
    const lines = Array.from({ length: 130_000 }, (_, index) =>
      index < 125_000
        ? `{"c0":${index === 7 ? '"nan"' : 'null'},"c2":"${'x'.repeat(index < 4 ? 300 : 1)}"}`
        : `{"c0":${index},"c1":${index},"c2":"y${index}","c3":[${index}],"c4":"${index}.5"}`,
    )
    const { quality } = await compared({ columns }, lines)
    expect(quality.columns.map(({ nulls, min, max }) => [nulls, min, max])).toEqual([
      [124_999, '125000', '129999'],
      [125_000, '125000', '129999'],
      [0, 'x', 'y129999'],
      [125_000, null, null],
      [125_000, '125000.500', '129999.500'],
    ])
  })

  test('work for columns with hostile names', async () => {
    const names = ['l, list, element', 'l', `"quoted" 'x'`, 'a.b', 'select', 'é\u{1F600}', 'rowid', 'column_id']
    const columns = names.map((name, index) => ({ name, type: index === 1 ? 'BIGINT[]' : 'BIGINT', path: `$.c${index}` }))
    const { quality } = await compared({ columns }, ['{"c0":1,"c1":[5],"c2":2,"c3":3,"c4":4,"c5":5,"c6":6,"c7":7}', '{"c0":9}'])
    expect(quality.columns.map(({ name, values, max }) => [name, values, max])).toEqual([
      ['l, list, element', 2, '9'],
      ['l', 1, null],
      ...names.slice(2).map((name, index) => [name, 1, String(index + 2)]),
    ])
  })

  test('are missing if no row is accepted', async () => {
    const { quality } = await compared({ columns: [column('BIGINT', { required: true })] }, records([null, null]))
    expect(quality.columns).toEqual([
      { name: 'v', type: 'BIGINT', values: 0, nulls: 0, cast_nulls: 0, cast_dlq: 0, missing: 2, min: null, max: null },
    ])
  })
})

describe('failed casts', () => {
  test('have a bit for every possible column', () => {
    expect(definitionLimits.columnsMax).toBeLessThanOrEqual(2 * MASK_COLUMNS)
  })

  test('are counted by column, up to the hundredth', async () => {
    const columns = Array.from(
      { length: 100 },
      (_, index): Column => ({ name: `c${index}`, type: 'INTEGER', path: `$.c${index}` }),
    )
    const definition = { columns: columns.with(30, { ...columns[30], name: 'c30', cast_failures: 'dlq' } as Column) }
    const { quality, counts } = await decide(definition, [
      '{"c0":"x","c61":"x","c62":"x","c99":"x"}',
      '{"c99":"x"}',
      '{"c30":"x","c99":"x"}',
      '{}',
    ])
    const failed = quality.columns.flatMap(({ name, cast_nulls, cast_dlq }) =>
      cast_nulls + cast_dlq > 0 ? [[name, cast_nulls, cast_dlq]] : [],
    )
    expect(failed).toEqual([
      ['c0', 1, 0],
      ['c30', 0, 1],
      ['c61', 1, 0],
      ['c62', 1, 0],
      ['c99', 2, 0],
    ])
    expect(counts.castNulls).toBe(5)
  })

  test('are counted when there are more distinct masks than are held at once', { timeout: timeoutMs }, async () => {
    const columns = Array.from(
      { length: 14 },
      (_, index): Column => ({ name: `c${index}`, type: 'INTEGER', path: `$.c${index}` }),
    )
    const lines = Array.from({ length: 2 ** 14 }, (_, mask) =>
      JSON.stringify(Object.fromEntries(columns.map(({ name }, bit) => [name, mask & (2 ** bit) ? 'x' : 1]))),
    )
    const { quality, counts } = await decide({ columns }, lines)
    expect(quality.columns.map(({ cast_nulls }) => cast_nulls)).toEqual(Array(14).fill(2 ** 13))
    expect(counts.castNulls).toBe(14 * 2 ** 13)
  })
})

describe('random records', () => {
  const value = fc.oneof(
    fc.constantFrom(
      null,
      undefined,
      'x',
      '',
      'nan',
      'inf',
      true,
      -1,
      0,
      1.5,
      [1],
      ['x'],
      {},
      '2020-01-01',
      '9223372036854775808',
    ),
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
    fc.double().map(String),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc
      .tuple(fc.constantFrom('a', '\u{10ffff}', '\u007f', '€'), fc.integer({ min: 1, max: 400 }))
      .map(([char, count]) => char.repeat(count)),
  )
  const definition: Definition = {
    columns: [
      { name: 'big', type: 'BIGINT', path: '$.a' },
      { name: 'req', type: 'BIGINT', path: '$.b', required: true },
      { name: 'dec', type: 'DECIMAL(20,4)', path: '$.c', cast_failures: 'dlq' },
      { name: 'dbl', type: 'DOUBLE', path: '$.a' },
      { name: 'flt', type: 'FLOAT', path: '$.d' },
      { name: 'txt', type: 'VARCHAR', path: '$.d' },
      { name: 'day', type: 'DATE', path: '$.e' },
      { name: 'at', type: 'TIMESTAMP', path: '$.e' },
      { name: 'atz', type: 'TIMESTAMPTZ', path: '$.d' },
      { name: 'list', type: 'INTEGER[]', path: '$.a' },
    ],
    filters: [{ condition: 'big > 0 OR big IS NULL' }],
  }
  const record = fc.record({ a: value, b: fc.oneof(fc.integer(), fc.integer(), value), c: value, d: value, e: value })
  const other: Definition = { columns: [{ name: 'x', type: 'VARCHAR', path: '$.x' }] }

  test('match plain SQL over the Parquet file, and the DLQ', { timeout: timeoutMs }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(record, { maxLength: 40 }), fc.boolean(), async (values, isAlone) => {
        const lines = values.map((each) => JSON.stringify(each))
        const { quality, dlq, counts } = await compared(definition, lines, isAlone ? [] : [other])
        for (const { name, cast_dlq, missing } of quality.columns) {
          const of = (code: string) => dlq.filter((row) => row['error_code'] === code && row['column'] === name).length
          expect([name, cast_dlq, missing]).toEqual([name, of('cast_failed'), of('missing_required')])
        }
        expect(quality.columns.reduce((sum, { cast_nulls }) => sum + cast_nulls, 0)).toBe(counts.castNulls)
        expect(quality.sampled_records).toBe(lines.length)
      }),
      { numRuns: runs(6, 30) },
    )
  })

  test('add up to the same in several segments as in one', { timeout: timeoutMs }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 20 }), fc.nat(20), async (values, at) => {
        const lines = values.map((each) => JSON.stringify(each))
        const parts = await Promise.all([lines.slice(0, at), lines.slice(at), lines].map((part) => decide(definition, part)))
        const [first, second, all] = parts.map(({ quality }) => toSum(quality, '2026-11-20T08:00:00.000Z'))
        if (first === undefined || second === undefined || all === undefined) throw new Error('three parts')
        expect(addQualities([first, second])).toEqual(all)
        expect(addQualities([second, first])).toEqual(all)
      }),
      { numRuns: runs(3, 10) },
    )
  })
})

test('shortened minimum and maximum keep their order', () => {
  const type = parseType('VARCHAR')
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
      const cut = canonicalText(text, type) ?? ''
      expect(text.startsWith(cut)).toBe(true)
      expect([...cut].length).toBeLessThanOrEqual(boundCharsMax)
      expect(cut.isWellFormed()).toBe(true)
    }),
  )
})
