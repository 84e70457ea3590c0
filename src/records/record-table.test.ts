import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Value } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import type { Column, Definition } from '#model/definition.ts'
import { decide } from '../../test/support/decide.ts'
import { runs } from '../../test/support/thorough.ts'

const column = (name: string, type: string, more: Partial<Column> = {}): Column => ({ name, type, path: `$.${name}`, ...more })

/** Returns the value as a type, or the reason why the row was not accepted. */
async function becomes(type: string, json: string, path = '$.v'): Promise<Value | undefined> {
  const { rows, dlq } = await decide({ columns: [{ name: 'v', type, path, cast_failures: 'dlq' }] }, [`{"v":${json}}`])
  return dlq[0] === undefined ? rows[0]?.[0] : `DLQ ${dlq[0]['error_code']}`
}

describe('values', () => {
  // The edges of each type are in values-in-parquet.test.ts.
  test.each<[string, string, Value]>([
    // Text.
    ['VARCHAR', '"x"', 'x'],
    ['VARCHAR', '""', ''],
    ['VARCHAR', '"\\u0000a"', '\0a'],
    ['VARCHAR', '"\\ud83d\\ude00ü"', '😀ü'],
    ['VARCHAR', '12', '12'],
    ['VARCHAR', '1.50', '1.5'],
    ['VARCHAR', 'true', 'true'],
    ['VARCHAR', 'null', null],
    ['VARCHAR', '{"a": [1, "x"]}', '{"a":[1,"x"]}'],
    ['VARCHAR', '12345678901234567890123', '12345678901234567890123'],
    // Integers.
    ['BIGINT', '9223372036854775807', '9223372036854775807'],
    ['BIGINT', '"42"', '42'],
    ['BIGINT', '""', 'DLQ cast_failed'],
    ['BIGINT', 'true', 'DLQ cast_failed'],
    ['BIGINT', '[1]', 'DLQ cast_failed'],
    ['HUGEINT', '100000000000000000000000000000000000000', 'DLQ cast_failed'],
    // Fractions: a JSON number has the precision of a double, a text all of its digits.
    ['DECIMAL(38,10)', '"12345678901234567890.0123456789"', '12345678901234567890.0123456789'],
    ['DECIMAL(38,10)', '12345678901234567890.0123456789', '12345678901234567000.0000000000'],
    ['DOUBLE', '0.1', 0.1],
    ['DOUBLE', '-0.0', -0],
    ['DOUBLE', '"x"', 'DLQ cast_failed'],
    // Booleans.
    ['BOOLEAN', 'true', true],
    ['BOOLEAN', '0', false],
    ['BOOLEAN', '"yes"', true],
    ['BOOLEAN', '2', 'DLQ cast_failed'],
    // Time.
    ['TIMESTAMP', '"2013-01-10T07:58:30Z"', '2013-01-10 07:58:30+00'],
    ['TIMESTAMP', '"2020-01-01"', '2020-01-01 00:00:00+00'],
    ['TIMESTAMP', '"infinity"', 'DLQ cast_failed'],
    ['TIMESTAMPTZ', '"2020-01-01T00:00:00"', '2020-01-01 00:00:00+00'],
    ['DATE', '"0001-01-01"', '0001-01-01'],
    ['DATE', '"2026-02-30"', 'DLQ cast_failed'],
    ['TIME', '"23:59:59.999999"', '23:59:59.999999'],
    ['TIME', '"12:00:00.5 -05:30"', 'DLQ cast_failed'],
    ['TIME', '"2024-01-01 12:00:00"', '12:00:00'],
    ['TIME[]', '["12:00:00", "13:00:00+02"]', 'DLQ cast_failed'],
    ['TIMESTAMP', '"2024-01-01T00:00:00z"', 'DLQ cast_failed'],
    ['TIMESTAMP', '"2024-01-01t00:00:00.5Z"', 'DLQ cast_failed'],
    ['TIMESTAMP', '"2024-01-01t00:00:00+02:00"', 'DLQ cast_failed'],
    ['TIMESTAMPTZ', '"2024-01-01t00:00:00z"', 'DLQ cast_failed'],
    ['TIMESTAMP', '"2024-01-01t00:00:00 Europe/Berlin"', 'DLQ cast_failed'],
    // The rest.
    ['UUID', '"x"', 'DLQ cast_failed'],
    ['JSON', '{"a": [1, null]}', '{"a":[1,null]}'],
    ['JSON', '"x"', '"x"'],
    ['JSON', 'null', null],
    ['BLOB', '"ü"', 'DLQ cast_failed'],
    // Lists.
    ['INTEGER[]', '[1, "2", null]', [1, 2, null]],
    ['INTEGER[]', '[]', []],
    ['INTEGER[]', '[1, "x"]', 'DLQ cast_failed'],
    ['INTEGER[]', '5', 'DLQ cast_failed'],
    ['INTEGER[]', '{"a":1}', 'DLQ cast_failed'],
    ['INTEGER[]', '"[1,2]"', [1, 2]],
    ['VARCHAR[]', '["a", 1, true, {"b":1}]', ['a', '1', 'true', '{"b":1}']],
    ['INTEGER[][]', '[[1],[2,"3"]]', [[1], [2, 3]]],
    ['INTEGER[][]', '[[1],2]', 'DLQ cast_failed'],
    ['HUGEINT[]', '[99999999999999999999999999999999999999]', ['99999999999999999999999999999999999999']],
    ['TIMESTAMP[]', '["2020-01-01", "inf"]', 'DLQ cast_failed'],
    ['JSON[]', '[1,{"a":null}]', ['1', '{"a":null}']],
  ])('%s from %s', async (type, json, expected) => {
    expect(await becomes(type, json)).toEqual(expected)
  })

  test.each<[string, string, string, Value]>([
    ['INTEGER[]', '[{"k":1},{"k":"2"},{},{"k":null}]', '$.v[*].k', [1, 2, null]],
    ['INTEGER[]', '[{"k":"x"}]', '$.v[*].k', 'DLQ cast_failed'],
    ['INTEGER[]', '[]', '$.v[*].k', null],
    ['INTEGER[][]', '[{"k":[1]},{"k":[2,3]}]', '$.v[*].k', [[1], [2, 3]]],
    ['JSON[]', '[{"k":"a"}]', '$.v[*].k', ['"a"']],
    ['INTEGER', '[10,20]', '$.v[1]', 20],
    ['INTEGER', '{"0":10}', "$.v['0']", 10],
    ['INTEGER', '[10,20]', "$.v['1']", null],
    ['INTEGER', '{"a/b~c":1}', "$.v['a/b~c']", 1],
    ['INTEGER', '{"it\'s \\"q\\" \\\\":1}', '$.v."it\'s \\"q\\" \\\\"', 1],
    ['VARCHAR', '"t"', '$$.topic', 't/0'],
    ['VARCHAR', '"t"', '$$.client_id', null],
    ['TIMESTAMP', '"t"', '$$.ingested_at', '2023-11-14 22:13:20+00'],
    ['TIMESTAMP', '"t"', '$$.received_at', '2023-11-14 22:13:20+00'],
    ['VARCHAR', '"t"', '$$.content_type', 'text/plain'],
    ['VARCHAR', '"t"', '$$.address', '2001:db8:1::'],
    ['VARCHAR', '"t"', '$$.key_name', 'plant "7"'],
    ['VARCHAR', '"t"', '$$.user_properties.site', 'north'],
    ['VARCHAR', '"t"', '$$.user_properties["a b"]', '["1","2"]'],
    ['VARCHAR', '"t"', "$$.user_properties['0']", 'digit'],
    ['VARCHAR', '"t"', '$$.user_properties.__proto__', 'p'],
    ['VARCHAR', '"t"', '$$.user_properties.none', null],
    ['INTEGER', '"t"', '$$.user_properties.site', 'DLQ cast_failed'],
    ['VARCHAR', '"t"', '$$.headers.X-Hub-Signature-256', 'sha256=ab'],
    ['VARCHAR', '"t"', "$$.headers['x-hub-signature-256']", 'sha256=ab'],
    ['VARCHAR', '"t"', '$$.headers["X-Hub-Signature-256"]', 'sha256=ab'],
    ['VARCHAR', '"t"', '$$.headers."3-d"', 'digit'],
    ['VARCHAR', '"t"', '$$.headers.x-none', null],
  ])('%s from %s at %s', async (type, json, path, expected) => {
    expect(await becomes(type, json, path)).toEqual(expected)
  })

  test('the first of two equal keys counts', async () => {
    const { rows } = await decide({ columns: [column('a', 'INTEGER')] }, ['{"a":1,"a":2}'])
    expect(rows).toEqual([[1]])
  })

  test('128-bit integers are decimals in the Parquet file', async () => {
    const { types } = await decide({ columns: [column('a', 'HUGEINT'), column('b', 'DECIMAL(9,2)')] }, ['{"a":1}'])
    expect(types).toEqual(['DECIMAL(38,0)', 'DECIMAL(9,2)'])
  })
})

describe('records', () => {
  test.each([
    ['not JSON', '{"a":1', 'invalid_json'],
    ['nothing', '', 'invalid_json'],
    ['a byte order mark', '\ufeff{"a":1}', 'invalid_json'],
    ['a NUL', '{"a":"\0"}', 'invalid_json'],
    ['a raw control character', '{"a":"\x01"}', 'invalid_json'],
    ['two values', '{"a":1}{"a":2}', 'invalid_json'],
    ['a comment', '/* x */{"a":1}', 'invalid_json'],
    ['a lone surrogate', '{"a":"\\ud800"}', 'invalid_json'],
    ['unbounded nesting', '['.repeat(MiB), 'invalid_json'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'invalid_utf8'],
    ['an encoded surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 'invalid_utf8'],
  ])('%s goes to the DLQ, byte for byte', async (_, record, code) => {
    const { dlq, counts } = await decide({ columns: [column('a', 'INTEGER')] }, ['{"a":1}', record, '{"a":2}'])
    expect(counts).toMatchObject({ processed: 3, accepted: 2, dlq: 1, errors: { [code]: 1 }, lastError: { code } })
    const [row = {}] = dlq
    expect(row).toMatchObject({ error_code: code, column: null, record_index: 1, segment_seq: 7, view: 'seen', view_version: 3 })
    expect(row).toMatchObject({ topic: 't/1', client_id: null, ingested_at: '2023-11-14T22:13:20.000001Z' })
    const back =
      typeof row['record'] === 'string' ? Buffer.from(row['record']) : Buffer.from(String(row['record_base64']), 'base64')
    expect(back.equals(Buffer.from(record))).toBe(true)
    expect(row[code === 'invalid_utf8' ? 'record' : 'record_base64']).toBeNull()
  })

  test.each([
    ['a number', '42'],
    ['a text', '"x"'],
    ['null', 'null'],
    ['a list', '[1]'],
    ['a trailing comma', '{"b":1,}'],
    ['NaN', '{"b":NaN}'],
    ['deep nesting', `{"b":${'['.repeat(300_000)}${']'.repeat(300_000)}}`],
  ])('%s counts as a record without the column', async (_, record) => {
    const { rows } = await decide({ columns: [column('a', 'INTEGER')] }, [record])
    expect(rows).toEqual([[null]])
  })

  test('a value may have a megabyte', async () => {
    const long = 'ü'.repeat(MiB / 2 - 20)
    const { rows } = await decide({ columns: [column('a', 'VARCHAR')] }, Array(40).fill(JSON.stringify({ a: long })))
    expect(rows).toHaveLength(40)
    expect(rows.every(([value]) => value === long)).toBe(true)
  })
})

describe('the rules of a row', () => {
  const definition: Definition = {
    columns: [
      column('a', 'INTEGER', { required: true }),
      column('b', 'INTEGER', { cast_failures: 'dlq' }),
      column('c', 'INTEGER'),
    ],
    filters: [{ condition: 'a <> 0' }, { condition: 'c > 0 OR c IS NULL OR b = 7' }],
  }
  const fate = async (record: string): Promise<string> => {
    const { counts, dlq } = await decide(definition, [record])
    if (counts.dlq > 0) return `${dlq[0]?.['error_code']} ${dlq[0]?.['column']}`
    return `${counts.accepted > 0 ? 'accepted' : 'dropped'}${counts.castNulls > 0 ? ` with ${counts.castNulls} NULL` : ''}`
  }

  test.each([
    ['{"a":1,"b":2,"c":3}', 'accepted'],
    ['{"a":1}', 'accepted'],
    ['{"a":0}', 'dropped'],
    // The filter is false: other problems of the row do not matter.
    ['{"a":0,"b":"x"}', 'dropped'],
    ['{"b":1,"c":-1}', 'dropped'],
    // The first column's error.
    ['{}', 'missing_required a'],
    ['{"a":null}', 'missing_required a'],
    ['{"a":"x"}', 'cast_failed a'],
    ['{"b":"x"}', 'missing_required a'],
    ['{"a":1,"b":"x"}', 'cast_failed b'],
    // The filter is unknown because of a failed cast: the error wins.
    ['{"a":1,"b":"x","c":-1}', 'cast_failed b'],
    ['{"a":1,"c":"x"}', 'accepted with 1 NULL'],
  ])('%s is %s', async (record, expected) => {
    expect(await fate(record)).toBe(expected)
  })

  test('an unknown filter drops the row and counts the value that became NULL', async () => {
    const { counts } = await decide({ columns: [column('a', 'INTEGER')], filters: [{ condition: 'a > 5' }] }, [
      '{"a":"x"}',
      '{}',
      '{"a":1}',
    ])
    expect(counts).toMatchObject({ processed: 3, accepted: 0, dropped: 3, dlq: 0, castNulls: 1 })
  })

  test('an error inside a filter makes it unknown for that row only', async () => {
    const { rows } = await decide(
      {
        columns: [column('a', 'UTINYINT'), column('b', 'VARCHAR')],
        filters: [{ condition: 'a - 1 > 3 AND CAST(b AS INTEGER) = 5' }],
      },
      ['{"a":0,"b":"5"}', '{"a":9,"b":"x"}', '{"a":9,"b":"5"}'],
    )
    expect(rows).toEqual([[9, '5']])
  })

  test('an error is caught even if its expression occurs twice', async () => {
    const twice = { columns: [column('a', 'UTINYINT')], filters: [{ condition: 'a - 1 > 3 AND a - 1 < 9' }] }
    expect((await decide(twice, ['{"a":0}', '{"a":5}'])).rows).toEqual([[5]])
    const lists = ['INTEGER[]', 'BIGINT[]', 'TIMESTAMP[]', 'DATE[]', 'TIME[]', 'JSON[]', 'INTEGER[][]']
    const columns = lists.map((type, index) => ({ name: `c${index}`, type, path: '$.l' }))
    const { rows, counts } = await decide({ columns }, ['{"l":5}', '{"l":"x"}', '{"l":[1]}'])
    expect(rows.map((row) => row[0])).toEqual([null, null, [1]])
    expect(counts.castNulls).toBe(7 + 7 + 4)
  })

  test('messages name the column and quote the value', async () => {
    const { dlq } = await decide({ columns: [column('a', 'DECIMAL(4,2)', { cast_failures: 'dlq', required: true })] }, [
      '{"a":"it\'s \\"long\\""}',
      '{}',
      `{"a":"${'x'.repeat(1000)}"}`,
    ])
    expect(dlq.map(({ message }) => message)).toEqual([
      'the value "it\'s \\"long\\"" of column "a" is not of type DECIMAL(4,2)',
      'required column "a" has no value in the record',
      `the value "${'x'.repeat(200)}" of column "a" is not of type DECIMAL(4,2)`,
    ])
  })

  test.each([
    ["LIKE '%a_%a_%a_%a_%a_%a_%b'", 0],
    ["LIKE '%a%a%a%a%a%a%a%a%a%b'", 0],
    ["ILIKE '%A_A%A_A%A_A%'", 1],
    ["SIMILAR TO '(a*)*b'", 0],
    ["LIKE 'aaa!%' ESCAPE '!' OR v LIKE 'a%'", 1],
  ])('a megabyte of text %s is matched quickly', async (condition, accepted) => {
    const { counts } = await decide({ columns: [column('v', 'VARCHAR')], filters: [{ condition: `v ${condition}` }] }, [
      `{"v":"${'a'.repeat(MiB - 100)}"}`,
    ])
    expect(counts.accepted).toBe(accepted)
  })
})

describe('random records and definitions obey the rules', () => {
  /** A value, DuckDB's text for it, and its value as each type; undefined if it is not a value of the type. */
  type Sample = { readonly json: string; readonly text: string | null; readonly as: Readonly<Record<string, Value | undefined>> }
  const sample = (json: string, text: string | null, bigint?: string, boolean?: boolean, date?: string): Sample => ({
    json,
    text,
    as: { VARCHAR: text, BIGINT: bigint, BOOLEAN: boolean, DATE: date },
  })
  const samples: readonly Sample[] = [
    sample('null', null),
    sample('"x"', 'x'),
    sample('""', ''),
    sample('"7"', '7', '7'),
    sample('5', '5', '5'),
    sample('-12', '-12', '-12'),
    sample('0', '0', '0', false),
    sample('true', 'true', undefined, true),
    sample('"false"', 'false', undefined, false),
    sample('{"k":[1,2]}', '{"k":[1,2]}'),
    sample('"2026-11-20"', '2026-11-20', undefined, undefined, '2026-11-20'),
  ]
  const keys = ['a', 'b', 'c'] as const
  type Doc = { readonly [key in (typeof keys)[number]]?: Sample }
  type Truth = boolean | null
  type Test = { readonly sql: string; readonly holds: (row: readonly (Value | undefined)[], columns: readonly Column[]) => Truth }

  const columnArbitrary = fc.record({
    key: fc.constantFrom(...keys),
    type: fc.constantFrom('VARCHAR', 'BIGINT', 'BOOLEAN', 'DATE'),
    required: fc.option(fc.boolean(), { nil: undefined }),
    cast_failures: fc.option(fc.constantFrom('null' as const, 'dlq' as const), { nil: undefined }),
  })
  const not = (truth: Truth): Truth => (truth === null ? null : !truth)
  const and = (one: Truth, other: Truth): Truth =>
    one === false || other === false ? false : one === null || other === null ? null : true

  /** Conditions on the first column, with the expected result. */
  const testArbitrary: fc.Arbitrary<Test> = fc.letrec<{ leaf: Test; node: Test }>((tie) => ({
    leaf: fc.oneof(
      fc.constant<Test>({ sql: 'c0 IS NULL', holds: ([value]) => value === null || value === undefined }),
      fc.constant<Test>({
        sql: "CAST(c0 AS VARCHAR) = '5'",
        holds: ([value]) => (value === null || value === undefined ? null : String(value) === '5'),
      }),
      fc.constant<Test>({
        sql: "CAST(c0 AS VARCHAR) IN ('x', 'true', '0')",
        holds: ([value]) => (value === null || value === undefined ? null : ['x', 'true', '0'].includes(String(value))),
      }),
      fc.constant<Test>({ sql: 'true', holds: () => true }),
    ),
    node: fc.oneof(
      { maxDepth: 3 },
      tie('leaf'),
      tie('node').map((inner): Test => ({ sql: `NOT (${inner.sql})`, holds: (...row) => not(inner.holds(...row)) })),
      fc.tuple(tie('node'), tie('node')).map(
        ([one, other]): Test => ({
          sql: `(${one.sql} AND ${other.sql})`,
          holds: (...row) => and(one.holds(...row), other.holds(...row)),
        }),
      ),
      fc.tuple(tie('node'), tie('node')).map(
        ([one, other]): Test => ({
          sql: `(${one.sql} OR ${other.sql})`,
          holds: (...row) => not(and(not(one.holds(...row)), not(other.holds(...row)))),
        }),
      ),
    ),
  })).node

  const docArbitrary: fc.Arbitrary<Doc | string> = fc.oneof(
    {
      weight: 9,
      arbitrary: fc.record(
        { a: fc.constantFrom(...samples), b: fc.constantFrom(...samples), c: fc.constantFrom(...samples) },
        { requiredKeys: [] },
      ),
    },
    { weight: 1, arbitrary: fc.constantFrom('{', 'nope', '', '{"a":1}}', '\0') },
  )

  /** The rules of docs/views.md. */
  function judge(columns: readonly (Column & { key: (typeof keys)[number] })[], tests: readonly Test[], doc: Doc | string) {
    if (typeof doc === 'string') return { fate: 'dlq', code: 'invalid_json', nulls: 0, row: [] }
    const values = columns.map(({ key, type }) => ({ text: doc[key]?.text ?? null, value: doc[key]?.as[type] }))
    const row = values.map(({ value }) => value ?? null)
    const truth = tests.map(({ holds }) => holds(row, columns)).reduce<Truth>(and, true)
    if (truth === false) return { fate: 'dropped', code: undefined, nulls: 0, row }
    for (const [index, { required, cast_failures }] of columns.entries()) {
      const { text, value } = values[index] ?? {}
      const failed = text !== null && value === undefined
      if (failed && (required === true || cast_failures === 'dlq')) return { fate: 'dlq', code: 'cast_failed', nulls: 0, row }
      if (required === true && text === null) return { fate: 'dlq', code: 'missing_required', nulls: 0, row }
    }
    const nulls = values.filter(({ text, value }) => text !== null && value === undefined).length
    return { fate: truth === null ? 'dropped' : 'accepted', code: undefined, nulls, row }
  }

  const otherView: Definition = {
    columns: [column('a', 'BIGINT', { cast_failures: 'dlq' }), column('b', 'VARCHAR'), column('c', 'DATE', { required: true })],
    filters: [{ condition: 'a > 0' }],
  }

  test.each([
    ['alone', []],
    ['beside another view', [otherView]],
  ])('like a model in JavaScript, %s', async (_, beside) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(columnArbitrary, { minLength: 1, maxLength: 4 }),
        fc.array(testArbitrary, { maxLength: 2 }),
        fc.array(docArbitrary, { minLength: 1, maxLength: 60 }),
        async (drawn, tests, docs) => {
          const columns = drawn.map(({ key, type, required, cast_failures }, index) => ({
            key,
            name: `c${index}`,
            type,
            path: `$.${key}`,
            ...(required === undefined ? {} : { required }),
            ...(cast_failures === undefined ? {} : { cast_failures }),
          }))
          const definition = {
            columns: columns.map(({ key: _, ...rest }) => rest),
            filters: tests.map(({ sql }) => ({ condition: sql })),
          }
          const records = docs.map((doc) =>
            typeof doc === 'string'
              ? doc
              : `{${keys.flatMap((key) => (doc[key] ? [`"${key}": ${doc[key].json}`] : [])).join(', ')}}`,
          )
          const expected = docs.map((doc) => judge(columns, tests, doc))
          const of = (fate: string) => expected.filter((each) => each.fate === fate)
          const { counts, rows, dlq } = await decide(definition, records, beside)
          expect(rows).toEqual(of('accepted').map(({ row }) => row))
          expect(dlq.map(({ error_code }) => error_code)).toEqual(of('dlq').map(({ code }) => code))
          expect(dlq.map(({ record_index }) => record_index)).toEqual(
            expected.flatMap(({ fate }, index) => (fate === 'dlq' ? [index] : [])),
          )
          expect(counts).toMatchObject({
            processed: docs.length,
            accepted: rows.length,
            dropped: of('dropped').length,
            dlq: dlq.length,
          })
          expect(counts.castNulls).toBe(expected.reduce((sum, { nulls }) => sum + nulls, 0))
        },
      ),
      { numRuns: runs(6, 25) },
    )
  })
})
