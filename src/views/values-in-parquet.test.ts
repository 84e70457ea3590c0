/** Edge values of every type in real Parquet, read by two independent readers. */
import { describe, expect, test } from 'vitest'
import type { Value } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import type { Column } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'
import { parseType } from '#model/types/column-type.ts'
import { descriptors, type ScalarName } from '#model/types/descriptors.ts'
import { formProblem } from '#model/types/file-form.ts'
import { decide } from '../../test/support/decide.ts'
import { queryRows, type Row, readWithHyparquet } from '../../test/support/parquet.ts'

/** The values of one record by column, as DuckDB and hyparquet read them. */
async function readBack(columns: readonly Column[], record: string) {
  let others: readonly Row[] = []
  const look = async (path: string) => {
    others = await readWithHyparquet([path])
  }
  const { rows, dlq } = await decide({ columns: [...columns] }, [record], [], look)
  expect(dlq).toEqual([])
  return { values: rows[0] ?? [], others: columns.map(({ name }) => others[0]?.[name]), names: Object.keys(others[0] ?? {}) }
}

const failed = Symbol('failed')

/** Type, JSON, DuckDB's value, and hyparquet's value if it differs: it reads decimals as doubles. */
const edges: [type: string, json: string, expected: Value | typeof failed, other?: unknown][] = [
  // NaN and the infinities, as JSON that DuckDB tolerates and as text.
  ['DOUBLE', 'NaN', 'NaN', Number.NaN],
  ['DOUBLE', '"nan"', 'NaN', Number.NaN],
  ['DOUBLE', '-Infinity', '-Infinity', Number.NEGATIVE_INFINITY],
  ['DOUBLE', '1e400', 'Infinity', Number.POSITIVE_INFINITY],
  ['DOUBLE', '5e-324', 5e-324],
  ['DOUBLE', '"1,5"', failed],
  ['FLOAT', '1e39', 'Infinity', Number.POSITIVE_INFINITY],
  ['FLOAT', '16777217', 16777216, '16777216'],
  ['BIGINT', 'NaN', failed],
  ['DECIMAL(18,2)', '"Infinity"', failed],
  // Integers, to the last digit.
  ['BIGINT', '9007199254740993', '9007199254740993'],
  ['BIGINT', '-9223372036854775808', '-9223372036854775808'],
  ['BIGINT', '-9223372036854775809', failed],
  ['BIGINT', '2.5', '3'],
  ['BIGINT', '-2.5', '-3'],
  ['BIGINT', '1e18', '1000000000000000000'],
  ['UBIGINT', '18446744073709551615', '18446744073709551615', '18446744073709552000'],
  ['UBIGINT', '18446744073709551616', failed],
  ['UBIGINT', '-1', failed],
  ['INTEGER', '-2147483648', -2147483648, '-2147483648'],
  ['INTEGER', '2147483648', failed],
  ['UINTEGER', '4294967295', '4294967295'],
  ['SMALLINT', '-32768', -32768, '-32768'],
  ['USMALLINT', '65536', failed],
  ['TINYINT', '-128', -128, '-128'],
  ['UTINYINT', '256', failed],
  ['HUGEINT', '-99999999999999999999999999999999999999', '-99999999999999999999999999999999999999', '-1e+38'],
  ['UHUGEINT', '9007199254740993', '9007199254740993', '9007199254740992'],
  // Decimals.
  ['DECIMAL(18,2)', '"9999999999999999.99"', '9999999999999999.99', '10000000000000000'],
  ['DECIMAL(18,2)', '"9999999999999999.995"', failed],
  ['DECIMAL(18,2)', '"-0.005"', '-0.01', -0.01],
  ['DECIMAL(18,2)', '1e3', '1000.00', '1000'],
  ['DECIMAL(4,1)', '999.95', failed],
  ['DECIMAL(38,0)', '99999999999999999999999999999999999999', '99999999999999999999999999999999999999', '1e+38'],
  ['DECIMAL(38,0)', '100000000000000000000000000000000000000', failed],
  [
    'DECIMAL(38,38)',
    '"0.12345678901234567890123456789012345678"',
    '0.12345678901234567890123456789012345678',
    0.12345678901234568,
  ],
  // Time: offsets are applied in any form; epoch numbers are not times.
  ['TIMESTAMP', '"1969-12-31T23:59:59.999Z"', '1969-12-31 23:59:59.999+00', '1969-12-31T23:59:59.999Z'],
  ['TIMESTAMP', '"0001-01-01T00:00:00Z"', '0001-01-01 00:00:00+00', '0001-01-01T00:00:00.000Z'],
  ['TIMESTAMP', '"2026-01-01T00:00:00.123456789+0530"', '2025-12-31 18:30:00.123456+00', '2025-12-31T18:30:00.123Z'],
  ['TIMESTAMP', '"2026-01-01T00:00:00+05"', '2025-12-31 19:00:00+00', '2025-12-31T19:00:00.000Z'],
  ['TIMESTAMP', '"2026-01-01T10:00:00+05:30:15"', '2026-01-01 04:29:45+00', '2026-01-01T04:29:45.000Z'],
  ['TIMESTAMP', '"2026-01-01T10:00:00+02\\t"', '2026-01-01 08:00:00+00', '2026-01-01T08:00:00.000Z'],
  // No offset is larger than that of the Line Islands.
  ['TIMESTAMP', '"2026-01-01T14:00:00+14:00"', '2026-01-01 00:00:00+00', '2026-01-01T00:00:00.000Z'],
  ['TIMESTAMP', '"2026-01-01T10:00:00-1400"', '2026-01-02 00:00:00+00', '2026-01-02T00:00:00.000Z'],
  ['TIMESTAMP', '"2026-01-01T14:00:00+14:01"', failed],
  ['TIMESTAMP', '"2026-01-01T14:00:00.5+140001"', failed],
  ['TIMESTAMP', '"2026-01-01T00:00:00-15:00"', failed],
  ['TIMESTAMP', '"2026-01-01T00:00:00+15"', failed],
  ['TIMESTAMP', '"2026-01-01T00:00:00+99:00"', failed],
  ['TIMESTAMP', '"2026-01-01T00:00:00+05:60"', failed],
  ['TIMESTAMP', '"2026-06-30T23:59:60Z"', failed],
  ['TIMESTAMP', '"10000-01-01"', failed],
  ['TIMESTAMP', '"0001-12-31 (BC) 23:59:59.999999"', failed],
  ['TIMESTAMP', '"9999-12-31T23:59:59.999999Z"', '9999-12-31 23:59:59.999999+00', '9999-12-31T23:59:59.999Z'],
  ['TIMESTAMP', '1700000000', failed],
  ['TIMESTAMP', '"1700000000"', failed],
  ['TIMESTAMP', '"2026-01-01T00:00:00[Europe/Berlin]"', failed],
  // Without seconds, as Java prints times, also with the name of the zone after its offset (RFC 9557).
  ['TIMESTAMP', '"2026-11-20T08:15Z"', '2026-11-20 08:15:00+00', '2026-11-20T08:15:00.000Z'],
  ['TIMESTAMP', '"2026-11-20 08:15+01:00"', '2026-11-20 07:15:00+00', '2026-11-20T07:15:00.000Z'],
  ['TIMESTAMP', '"2026-11-20T08:15-0130"', '2026-11-20 09:45:00+00', '2026-11-20T09:45:00.000Z'],
  ['TIMESTAMP', '"2026-11-20T08:15+01"', '2026-11-20 07:15:00+00', '2026-11-20T07:15:00.000Z'],
  ['TIMESTAMP', '"2026-11-20T08:15+01:00[Europe/Berlin]"', '2026-11-20 07:15:00+00', '2026-11-20T07:15:00.000Z'],
  ['TIMESTAMP', '"2026-11-20T08:15:30.5Z[UTC][u-ca=hebrew]"', '2026-11-20 08:15:30.5+00', '2026-11-20T08:15:30.500Z'],
  ['TIMESTAMPTZ', '"2026-11-20T08:15Z"', '2026-11-20 08:15:00+00', '2026-11-20T08:15:00.000Z'],
  ['TIMESTAMPTZ', '"2026-11-20T08:15+01:00[Europe/Berlin]"', '2026-11-20 07:15:00+00', '2026-11-20T07:15:00.000Z'],
  [
    'TIMESTAMP[]',
    '["2026-11-20T08:15Z", null, "2026-11-20T08:15+01:00[Europe/Berlin]", "2026-11-20"]',
    ['2026-11-20 08:15:00+00', null, '2026-11-20 07:15:00+00', '2026-11-20 00:00:00+00'],
    ['2026-11-20T08:15:00.000Z', null, '2026-11-20T07:15:00.000Z', '2026-11-20T00:00:00.000Z'],
  ],
  [
    'TIMESTAMPTZ[][]',
    '[["2026-11-20T08:15+01"], [], null]',
    [['2026-11-20 07:15:00+00'], [], null],
    [['2026-11-20T07:15:00.000Z'], [], null],
  ],
  ['TIMESTAMP', '"2026-11-20T08:15+14:30"', failed],
  ['TIMESTAMP', '"2026-11-20T08:15[Europe/Berlin]"', failed],
  ['TIMESTAMP', '"2026-11-20T08:15+01:00[!Europe/London]"', failed],
  ['TIMESTAMP', '"2026-11-20T08:15+01:00 Europe/Berlin"', failed],
  ['TIMESTAMP', '"2026-11-20T25:15Z"', failed],
  ['TIMESTAMP', '"9999-12-31T23:59-01:00"', failed],
  ['TIMESTAMP', '"-infinityZ"', failed],
  ['TIMESTAMP[]', '["2026-11-20T08:15Z", "2026-11-20T08:15[Europe/Berlin]"]', failed],
  ['DATE', '"2026-11-20T08:15+01:00[Europe/Berlin]"', '2026-11-20', '2026-11-20T00:00:00.000Z'],
  ['TIMESTAMPTZ', '"2026-01-01T00:00:00+02:00"', '2025-12-31 22:00:00+00', '2025-12-31T22:00:00.000Z'],
  ['TIMESTAMPTZ', '"2026-01-01T00:00:00+14:30"', failed],
  ['DATE', '"1969-12-31"', '1969-12-31', '1969-12-31T00:00:00.000Z'],
  ['DATE', '"9999-12-31"', '9999-12-31', '9999-12-31T00:00:00.000Z'],
  ['DATE', '"2026-01-05T23:59:59-12:00"', '2026-01-05', '2026-01-05T00:00:00.000Z'],
  ['DATE', '20260105', failed],
  ['DATE', '"10000-01-01"', failed],
  ['DATE', '"0001-12-31 (BC)"', failed],
  ['DATE', '"infinity"', failed],
  [
    'DATE[]',
    '["0001-01-01","9999-12-31",null]',
    ['0001-01-01', '9999-12-31', null],
    ['0001-01-01T00:00:00.000Z', '9999-12-31T00:00:00.000Z', null],
  ],
  ['DATE[]', '["2026-01-01","-infinity"]', failed],
  ['DATE[]', '["2026-01-01","10000-01-01"]', failed],
  ['TIME', '"08:30:00.5"', '08:30:00.5'],
  ['TIME', '"08:15Z"', '08:15:00'],
  ['TIME', '"08:15+01:00"', failed],
  ['TIME', '"24:00"', failed],
  ['TIME[]', '["08:15Z","08:24:00",null]', ['08:15:00', '08:24:00', null]],
  ['TIME[]', '["08:15","24:00:00"]', failed],
  ['TIME[]', '["08:15","24:0"]', failed],
  // UUIDs, with and without hyphens and braces.
  ['UUID', '"{F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6}"', 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'],
  ['UUID', '"f81d4fae7dec11d0a76500a0c91e6bf6"', 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'],
  ['UUID', '"ffffffff-ffff-ffff-ffff-ffffffffffff"', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
  ['UUID', '"urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"', failed],
  ['UUID', '"f81d4fae-7dec-11d0-a765-00a0c91e6bf"', failed],
  // The rest.
  ['BOOLEAN', '"no"', false],
  ['BOOLEAN', '1.0', failed],
  ['BLOB', '"\\\\x00\\\\xFF"', '\\x00\\xFF', '00ff'],
  ['VARCHAR', '"\\ud83d\\ude00\\u0000"', '😀\0'],
  ['JSON', '{"b":9007199254740993}', '{"b":9007199254740993}'],
  ['JSON', '{"b": [NaN, -inf, "NaN", ",nan", "\\\\\\",nan",],}', '{"b":["NaN","-inf","NaN",",nan","\\\\\\",nan"]}'],
  ['JSON', 'Infinity', '"Infinity"'],
  ['JSON', '[1e999, null]', '[1e999,null]'],
  ['JSON[]', '[NaN, {"a": nan}, null]', ['"NaN"', '{"a":"nan"}', null]],
  // Lists.
  ['INTEGER[][][][]', '[[[[1],[2]],[]],[null]]', [[[[1], [2]], []], [null]], [[[['1'], ['2']], []], [null]]],
  ['BIGINT[]', '[9007199254740993,-9223372036854775808]', ['9007199254740993', '-9223372036854775808']],
  ['DOUBLE[]', '[1e400,"NaN",null]', ['Infinity', 'NaN', null], [Number.POSITIVE_INFINITY, Number.NaN, null]],
  ['DECIMAL(18,2)[]', '["1.10",2]', ['1.10', '2.00'], [1.1, '2']],
  ['TIMESTAMP[]', '["1969-07-20T20:17:40+01:00"]', ['1969-07-20 19:17:40+00'], ['1969-07-20T19:17:40.000Z']],
  ['TIMESTAMP[]', '["2026-01-01T14:00:00+14:00", null]', ['2026-01-01 00:00:00+00', null], ['2026-01-01T00:00:00.000Z', null]],
  ['TIMESTAMP[]', '["2026-01-01T14:00:00Z", "2026-01-01T14:00:00+14:01"]', failed],
  ['TIMESTAMPTZ[]', '["2026-01-01T14:00:00-15"]', failed],
  ['TIMESTAMP[]', '["2026-01-01T14:00:00+05:60"]', failed],
  ['UUID[]', '["f81d4fae-7dec-11d0-a765-00a0c91e6bf6"]', ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6']],
  ['BOOLEAN[]', '[true,"no",0]', [true, false, false]],
  ['VARCHAR[]', '[null,"null",""]', [null, 'null', '']],
  ['VARCHAR[][]', '[["a"],null]', [['a'], null]],
  ['BIGINT[]', '[1,1.5e400]', failed],
]

describe('edge values', () => {
  test('cover every type', () => {
    const covered = new Set(edges.map(([type]) => parseType(type).scalar))
    expect(Object.keys(descriptors).filter((name) => !covered.has(name as ScalarName))).toEqual([])
  })

  test.each(edges)(
    '%s from %s',
    async (type: string, json: string, expected: Value | typeof failed, other: unknown = expected) => {
      const column = { name: 'v', type, path: '$.v' }
      if (expected === failed) {
        const { dlq } = await decide({ columns: [{ ...column, cast_failures: 'dlq' }] }, [`{"v":${json}}`])
        expect(dlq).toMatchObject([{ error_code: 'cast_failed', column: 'v' }])
      } else {
        const { values, others } = await readBack([{ ...column, cast_failures: 'dlq' }], `{"v":${json}}`)
        expect(values).toEqual([expected])
        expect(others).toEqual([other])
      }
    },
  )

  test('a file says what its columns are, in types that every engine reads', async () => {
    const schema: Row[] = []
    const types = ['TIMESTAMP', 'TIMESTAMP[]', 'UUID', 'TIME', 'JSON', 'UBIGINT', 'UINTEGER']
    const forms = [undefined, 'naive', 'native'] as const
    const columns = types.flatMap((type) =>
      forms
        .filter((form) => formProblem(parseType(type), form) === undefined)
        .map((parquet) => ({ name: `${type} ${parquet}`, type, path: '$.v', ...(parquet && { parquet }) })),
    )
    await decide({ columns }, ['{"v":null}'], [], async (path) => {
      const { rows } = await queryRows(
        `SELECT name, trim(concat_ws(' ', type, converted_type, regexp_extract(logical_type, 'isAdjustedToUTC=.|UUIDType')))
         FROM parquet_schema(${quoteLiteral(path)}) WHERE type IS NOT NULL`,
      )
      schema.push(...rows.map(([name, type]) => ({ [String(name)]: type })))
      const { rows: metadata } = await queryRows(`SELECT key, value FROM parquet_kv_metadata(${quoteLiteral(path)})`)
      expect(metadata).toEqual([['org.apache.spark.version', '3.5.0']])
    })
    expect(schema).toEqual([
      { 'TIMESTAMP undefined': 'INT64 TIMESTAMP_MICROS isAdjustedToUTC=1' },
      { 'TIMESTAMP naive': 'INT64 TIMESTAMP_MICROS isAdjustedToUTC=0' },
      { element: 'INT64 TIMESTAMP_MICROS isAdjustedToUTC=1' },
      { element: 'INT64 TIMESTAMP_MICROS isAdjustedToUTC=0' },
      { 'UUID undefined': 'BYTE_ARRAY UTF8' },
      { 'UUID native': 'FIXED_LEN_BYTE_ARRAY UUIDType' },
      { 'TIME undefined': 'BYTE_ARRAY UTF8' },
      { 'TIME native': 'INT64 TIME_MICROS isAdjustedToUTC=0' },
      { 'JSON undefined': 'BYTE_ARRAY UTF8' },
      { 'JSON native': 'BYTE_ARRAY JSON' },
      { 'UBIGINT undefined': 'FIXED_LEN_BYTE_ARRAY DECIMAL' },
      { 'UBIGINT native': 'INT64 UINT_64' },
      { 'UINTEGER undefined': 'INT64 INT_64' },
      { 'UINTEGER native': 'INT32 UINT_32' },
    ])
  })

  test('JSON null counts as missing; "null" and "" are text', async () => {
    const columns = ['a', 'b', 'c', 'd'].map((name) => ({ name, type: 'VARCHAR', path: `$.${name}` }))
    const { values, others } = await readBack(columns, '{"a":null,"c":"null","d":""}')
    expect([values, others]).toEqual([
      [null, null, 'null', ''],
      [null, null, 'null', ''],
    ])
    const required = { columns: [{ name: 'a', type: 'VARCHAR', path: '$.a', required: true }] }
    const { dlq } = await decide(required, ['{"a":null}', '{}', '{"a":{"b":null}}', '{"a":[null]}'])
    expect(dlq).toMatchObject([{ error_code: 'missing_required' }, { error_code: 'missing_required' }])
  })
})

describe('an instant at the end of the range', () => {
  const types = ['TIMESTAMP', 'TIMESTAMPTZ', 'TIMESTAMP[]', 'TIMESTAMPTZ[]', 'TIMESTAMPTZ[][]']
  const nestedIn = (type: string, value: string): Value => {
    const list: Value = `${value}+00`
    return type.endsWith('[][]') ? [[list], null] : type.endsWith('[]') ? [list, null] : list
  }
  const columns = types.map((type, index) => ({
    name: `c${index}`,
    type,
    path: `$.${['at', 'list', 'lists'][type.split('[').length - 1]}`,
  }))
  const record = (at: string) => JSON.stringify({ at, list: [at, null], lists: [[at], null] })
  const outside = [
    ...['10000-01-01', '9999-12-31T23:59:59.999999-00:01', '294247-01-10T04:00:54.775806Z', '294247-01-10T04:00:54.775807-14:00'],
    ...['294247-01-10T09:00:54.775805+05:00', '294247-01-10T04:00:54.775807Z', '300000-01-01T00:00:00+01:00'],
    ...['0001-01-01T00:00:00+00:01', '0000-12-31T23:59:59Z', '0001-12-31 (BC) 23:59:59', '-0001-01-01T00:00:00Z'],
    ...[
      '-290308-12-22T00:00:00.999999Z',
      '-290308-12-22T00:00:00+00:00',
      '-290308-12-22T00:00:00-14:00',
      '-290308-12-21T23:00:00Z',
    ],
  ]

  test('is a value in every type, or a failed cast in every type, and never fails the view', async () => {
    const plain = JSON.stringify({ at: '2026-01-01T00:00:00Z' })
    const { rows, quality } = await decide({ columns }, [plain, ...outside.map(record), plain])
    expect(rows.slice(1, -1)).toEqual(outside.map(() => types.map(() => null)))
    expect(quality.columns.map((column) => column.cast_nulls)).toEqual(types.map(() => outside.length))
    expect(rows.at(-1)?.slice(0, 2)).toEqual(['2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00'])
    const dead = await decide({ columns: columns.map((column) => ({ ...column, cast_failures: 'dlq' })) }, outside.map(record))
    expect(dead.counts).toMatchObject({ accepted: 0, dlq: outside.length })
  })

  test.each([
    ['9999-12-31T23:59:59.999999Z', '9999-12-31 23:59:59.999999', '9999-12-31T23:59:59.999999Z'],
    ['10000-01-01T13:59:59.999999+14:00', '9999-12-31 23:59:59.999999', '9999-12-31T23:59:59.999999Z'],
    ['0001-01-01T00:00:00.000001Z', '0001-01-01 00:00:00.000001', '0001-01-01T00:00:00.000001Z'],
    ['0000-12-31T10:00:00-14:00', '0001-01-01 00:00:00', '0001-01-01T00:00:00.000000Z'],
  ])('%s is a value', async (text, value, iso) => {
    const { rows, quality } = await decide({ columns }, [record(text)])
    expect(rows).toEqual([types.map((type) => nestedIn(type, value))])
    expect(quality.columns.slice(0, 2)).toMatchObject([
      { min: iso, max: iso },
      { min: iso, max: iso },
    ])
  })

  test('is read by a condition as by a column', async () => {
    const filters = [{ condition: 's::TIMESTAMP IS NULL AND CAST(s AS TIMESTAMPTZ) IS NULL AND l::TIMESTAMP[] IS NULL' }]
    const texts = [
      { name: 's', type: 'VARCHAR', path: '$.at' },
      { name: 'l', type: 'VARCHAR[]', path: '$.list' },
    ]
    const { counts } = await decide({ columns: texts, filters }, outside.map(record))
    expect(counts).toMatchObject({ accepted: outside.length })
    for (const at of outside) {
      const constant = { columns: [{ name: 't', type: 'TIMESTAMPTZ', path: '$.at' }], filters: [{ condition: `t < '${at}'` }] }
      await expect(decide(constant, [])).rejects.toMatchObject({
        errors: [{ message: expect.stringContaining('is not of type') }],
      })
    }
  })
})

describe('column names', () => {
  const words = ['select', 'FROM', 'order', 'group', 'table', 'null', 'true', 'user', 'at', 'end', 'values', 'default']
  const ours = [
    'payload',
    'records',
    'received_at',
    'source',
    'texts',
    'jsons',
    'readable',
    'value_0',
    'verdict_0',
    'rowid',
    'condition_0',
  ]
  const odd = [
    'a b',
    '"',
    "it's",
    ';',
    '--',
    '/* x */',
    '\\',
    '$',
    '%',
    '💥',
    'größe',
    'ǅ',
    '*',
    '.',
    ',',
    '(',
    '1st',
    ' ',
    'x'.repeat(255),
    'constructor',
    'toString',
    'hasOwnProperty',
  ]
  const names = [...words, ...ours, ...odd]

  test('of any kind reach the Parquet file, and can be used in filters', async () => {
    const columns = names.map((name, index) => ({ name, type: 'BIGINT', path: `$.c${index}` }))
    const record = JSON.stringify(Object.fromEntries(names.map((_, index) => [`c${index}`, index])))
    const seen = await readBack(columns, record)
    expect(seen.names).toEqual(names)
    expect(seen.others).toEqual(names.map((_, index) => String(index)))
    const condition = names.map((name, index) => `"${name.replaceAll('"', '""')}" = ${index}`).slice(0, 40)
    const filters = [condition.slice(0, 20), condition.slice(20)].map((some) => ({ condition: some.join(' AND ') }))
    const { counts } = await decide({ columns, filters }, [record, '{"c0":1}'])
    expect(counts).toMatchObject({ accepted: 1, dropped: 1 })
  })

  test('of objects in JavaScript reach the Parquet file and the quality of the columns', async () => {
    const odd = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']
    const columns = odd.map((name) => ({ name, type: 'BIGINT', path: `$.${name}` }))
    const filters = [{ condition: `${odd[0]} = 0 AND "${odd[1]}" = 1` }]
    const record = `{${odd.map((name, index) => `"${name}":${index}`).join()}, "toJSON": {"__proto__": 7}}`
    const { rows, quality } = await decide({ columns, filters }, [record], [], async (path) => {
      const { columns: names } = await queryRows(`SELECT * FROM ${quoteLiteral(path)}`)
      expect(names).toEqual(odd)
    })
    expect(rows).toEqual([odd.map((_, index) => String(index))])
    expect(quality.columns.map(({ name, min, max }) => [name, min, max])).toEqual(odd.map((name, n) => [name, `${n}`, `${n}`]))
    expect(quality.unmapped.map(({ path }) => path)).toEqual(['$.toJSON'])
  })

  test('work for a hundred columns of all types', async () => {
    const types = ['BIGINT', 'VARCHAR', 'DOUBLE', 'BOOLEAN', 'DECIMAL(9,2)', 'TIMESTAMP', 'DATE', 'UUID', 'JSON', 'VARCHAR[]']
    const values = [
      '1',
      '"x"',
      '1.5',
      'true',
      '"2.25"',
      '"2026-01-01T00:00:00Z"',
      '"2026-01-01"',
      `"${'0'.repeat(32)}"`,
      '{}',
      '["a"]',
    ]
    const columns = Array.from({ length: definitionLimits.columnsMax }, (_, n) => ({
      name: `c${n}`,
      type: types[n % types.length] ?? '',
      path: `$.deep.c${n}`,
      required: true,
    }))
    const record = `{"deep":{${columns.map(({ name }, n) => `"${name}":${values[n % values.length]}`)}}}`
    const { values: read } = await readBack(columns, record)
    expect(read.slice(90)).toEqual([
      ...[
        '1',
        'x',
        1.5,
        true,
        '2.25',
        '2026-01-01 00:00:00+00',
        '2026-01-01',
        '00000000-0000-0000-0000-000000000000',
        '{}',
        ['a'],
      ],
    ])
    expect(read.slice(0, 10)).toEqual(read.slice(90))
  })
})
