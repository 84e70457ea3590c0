import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Definition } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'
import { decide } from '../../test/support/decide.ts'
import { runs } from '../../test/support/thorough.ts'
import { compileView } from './compile.ts'

type Column = Definition['columns'][number]

const a: Column = { name: 'a', type: 'BIGINT', path: '$.a' }
const s: Column = { name: 's', type: 'VARCHAR', path: '$.s' }
const t: Column = { name: 't', type: 'TIMESTAMP', path: '$.at' }
const value = (name: string, type: string, text: string, more: Partial<Column> = {}): Column => ({
  name,
  type,
  value: text,
  ...more,
})

async function problems(columns: readonly Column[], filters: Definition['filters'] = []): Promise<readonly unknown[]> {
  const found = await compileView({ columns: [...columns], filters }).catch((error: { errors: unknown[] }) => error)
  return 'errors' in found
    ? (found.errors as { path: string; message: string }[]).map(({ path, message }) => `${path}: ${message}`)
    : []
}

describe('values', () => {
  test.each<[type: string, text: string, record: object, expected: unknown]>([
    ['BIGINT', 'a + 1', { a: 1 }, '2'],
    ['BIGINT', 'a', {}, null],
    ['DOUBLE', 'a / 2', { a: 1 }, 0.5],
    ['DECIMAL(18,2)', 'round(a * 1.005, 2)', { a: 100 }, '100.50'],
    ['VARCHAR', 'lower(trim(s))', { s: '  Ab ' }, 'ab'],
    ['VARCHAR', "coalesce(s, 'none')", {}, 'none'],
    ['VARCHAR', "CASE WHEN a > 10 THEN 'big' WHEN a IS NULL THEN NULL ELSE 'small' END", { a: 3 }, 'small'],
    ['VARCHAR', "concat(s, '-', CAST(a AS VARCHAR))", { a: 3, s: 'x' }, 'x-3'],
    ['BOOLEAN', "starts_with(s, 'x')", { s: 'xy' }, true],
    ['TIMESTAMP', "date_trunc('hour', t)", { at: '2026-11-20T08:15:30+01:00' }, '2026-11-20 07:00:00+00'],
    ['BIGINT', 'CAST(s AS BIGINT)', { s: '12' }, '12'],
    ['BIGINT', 'NULL', {}, null],
    ['VARCHAR', "'always'", {}, 'always'],
    ['VARCHAR[]', "[s, 'b']", { s: 'a' }, ['a', 'b']],
    ['HUGEINT', 'CAST(a AS HUGEINT) * 10', { a: 9_007_199_254_740_991 }, '90071992547409910'],
    ['INTEGER', 'a % 7', { a: 15 }, 1],
    ['DATE', 'CAST(t AS DATE)', { at: '2026-11-20T00:30:00+01:00' }, '2026-11-19'],
  ])('%s: %s', async (type, text, record, expected) => {
    const { rows } = await decide({ columns: [a, s, t, value('c', type, text)] }, [JSON.stringify(record)])
    const [cell] = rows[0]?.slice(3) ?? []
    const plain = typeof cell === 'bigint' ? String(cell) : cell
    expect(JSON.parse(JSON.stringify(plain, (_, each) => (typeof each === 'bigint' ? String(each) : each)) ?? 'null')).toEqual(
      expected,
    )
  })

  test('a TIMESTAMPTZ is the same instant, whatever the zone of the machine', async () => {
    const columns = [{ ...t, hidden: true }, value('c', 'TIMESTAMPTZ', 't'), value('l', 'TIMESTAMPTZ[]', '[t]')]
    const { rows, types } = await decide({ columns }, ['{"at":"2026-11-20T08:00:00Z"}'])
    expect(types[0]).toBe('TIMESTAMP WITH TIME ZONE')
    expect(JSON.stringify(rows)).toContain('2026-11-20')
  })

  test('reads other columns in any order, and those that are computed', async () => {
    const columns = [value('c', 'BIGINT', 'b * 2'), value('b', 'BIGINT', 'A + 1', { hidden: true }), a]
    const { rows, types } = await decide({ columns, filters: [{ condition: 'b < 100' }] }, ['{"a":1}', '{"a":99}'])
    expect(rows.map((row) => row.map(String))).toEqual([['4', '1']])
    expect(types).toHaveLength(2)
  })

  test('hidden columns are not written, but their failures count', async () => {
    const columns = [
      { ...a, name: 'dead', hidden: true, cast_failures: 'dlq' as const },
      { ...a, name: 'fine', path: '$.a', type: 'VARCHAR', hidden: true },
      { ...a, name: 'nulled', path: '$.b', hidden: true },
      { ...a, name: 'needed', path: '$.c', hidden: true, required: true },
      s,
    ]
    const records = [{ a: 'x', b: 1 }, { a: 1, b: 'x', c: 1 }, { a: 2, c: 1 }, { a: 3 }].map((each, at) =>
      JSON.stringify({ ...each, s: at }),
    )
    const { rows, quality, dlq, counts } = await decide({ columns }, records)
    expect(rows).toEqual([['1'], ['2']])
    expect(dlq).toMatchObject([
      { column: 'dead', error_code: 'cast_failed' },
      { column: 'needed', error_code: 'missing_required' },
    ])
    expect(counts).toMatchObject({ processed: 4, accepted: 2, dlq: 2, castNulls: 1 })
    const none = { type: 'BIGINT', values: 0, nulls: 0, cast_nulls: 0, cast_dlq: 0, missing: 0, min: null, max: null }
    expect(quality.columns).toEqual([
      { ...none, name: 'dead', cast_dlq: 1 },
      { ...none, name: 'nulled', cast_nulls: 1 },
      { ...none, name: 'needed', missing: 1 },
      { ...none, name: 's', type: 'VARCHAR', values: 2, min: '1', max: '2' },
    ])
  })

  test('fields of the envelope', async () => {
    const columns = [
      value('c', 'VARCHAR', "$$.protocol || ':' || coalesce($$.client_id, '$$.none')"),
      value('t', 'TIMESTAMP', '$$.ingested_at'),
    ]
    const { rows } = await decide({ columns, filters: [{ condition: "$$.protocol = 'mqtt'" }] }, ['{}'])
    expect(rows).toMatchObject([['mqtt:$$.none', expect.anything()]])
    expect(await problems([value('c', 'VARCHAR', '$$.nonsense')])).toEqual([expect.stringContaining('must be one of $$.topic')])
  })
})

describe('fields of the envelope', () => {
  test.each([
    [String.raw`s <> E'\'' AND s = '$$.topic'`],
    ["s = '$$.topic' /* a /* b */ ' */ AND s = '$$.topic'"],
    ["s = '$$.topic' -- '\n AND $$.protocol = 'mqtt'"],
    ["DATE'2026-01-01' < t AND s = '$$.topic'"],
  ])('texts and comments are none: %s', async (condition) => {
    const { rows } = await decide({ columns: [s, t], filters: [{ condition }] }, ['{"s":"$$.topic","at":"2026-11-20"}'])
    expect(rows).toHaveLength(1)
  })

  test('user properties that differ by case are two', async () => {
    const columns = [value('c', 'BOOLEAN', "$$.user_properties.site = 'north' AND $$.user_properties.Site IS NULL")]
    const { rows } = await decide({ columns }, ['{}'])
    expect(rows).toEqual([[true]])
  })

  test('at most twenty', async () => {
    const naming = (count: number) => Array.from({ length: count }, (_, index) => `$$.headers.x${index}`).join(', ')
    expect(await problems([value('c', 'VARCHAR', `coalesce(${naming(definitionLimits.fieldsMax)})`)])).toEqual([])
    expect(await problems([value('c', 'VARCHAR', `coalesce(${naming(definitionLimits.fieldsMax + 1)})`)])).toEqual([
      ': its expressions name 21 fields of the envelope: at most 20 are allowed; read the others by columns with a path',
    ])
  })
})

describe('failures', () => {
  const bad = '{"s":"twelve","a":9223372036854775807}'

  test.each([
    ['a cast', 'CAST(s AS BIGINT)'],
    ['a cast within', 'CAST(s AS BIGINT) + 1'],
    ['an overflow', 'a + 1'],
    ['a number out of range', 'CAST(a AS DOUBLE) * 1e18'],
  ])('%s is NULL and counted, or a dead letter', async (_, text) => {
    const counted = await decide({ columns: [a, s, value('c', 'BIGINT', text)] }, [bad, '{"s":"1","a":1}'])
    expect(counted.counts).toMatchObject({ accepted: 2, castNulls: 1, dlq: 0 })
    expect(counted.rows.map((row) => row[2] === null)).toEqual([true, false])
    expect(counted.quality.columns[2]).toMatchObject({ cast_nulls: 1, nulls: 1 })
    for (const more of [{ cast_failures: 'dlq' as const }, { required: true }]) {
      const { dlq, counts } = await decide({ columns: [a, s, value('c', 'BIGINT', text, more)] }, [bad, '{"s":"1","a":1}'])
      expect(counts).toMatchObject({ accepted: 1, dlq: 1 })
      expect(dlq).toMatchObject([
        { error_code: 'cast_failed', column: 'c', message: expect.stringContaining('cannot be computed as BIGINT from {') },
      ])
    }
  })

  test('say what the expression read', async () => {
    const { dlq } = await decide({ columns: [s, value('c', 'BIGINT', 'CAST(s AS BIGINT)', { required: true })] }, [bad])
    expect(dlq[0]?.['message']).toBe('column "c" cannot be computed as BIGINT from {"s":"twelve"}')
  })

  test('TRY_CAST, and casts that are not reached, are none', async () => {
    const columns = [
      s,
      value('c', 'BIGINT', 'TRY_CAST(s AS BIGINT)'),
      value('d', 'BIGINT', "CASE WHEN s = 'twelve' THEN 12 ELSE CAST(s AS BIGINT) END"),
    ]
    const { counts, rows } = await decide({ columns }, [bad])
    expect(counts).toMatchObject({ castNulls: 0, accepted: 1 })
    expect(rows.map((row) => row.map((cell) => cell && String(cell)))).toEqual([['twelve', null, '12']])
  })

  test.each([
    ['TIMESTAMP', 'yesterday'],
    ['DATE', '0000-00-00'],
    ['TIMESTAMPTZ', 'x'],
    ['TIME', '25:00'],
    ['TIMESTAMP', '12000-01-01'],
  ])('text that is no %s: %s', async (type, text) => {
    const columns = [s, value('c', type, `CAST(s AS ${type})`, { cast_failures: 'dlq' })]
    const { counts } = await decide({ columns }, [JSON.stringify({ s: text }), '{}'])
    expect(counts).toMatchObject({ accepted: 1, dlq: 1 })
  })

  test('a required value that is NULL is missing', async () => {
    const { dlq } = await decide({ columns: [s, value('c', 'VARCHAR', 'lower(s)', { required: true })] }, ['{}'])
    expect(dlq).toMatchObject([{ error_code: 'missing_required', column: 'c' }])
  })
})

describe('what is rejected', () => {
  test.each<[columns: readonly Column[], message: string]>([
    [[a, { name: 'b', type: 'BIGINT' }], 'columns.1.path: must be given, such as $.user.id, or a value, such as lower(name)'],
    [[a, { ...a, name: 'b', value: 'a' }], 'columns.1.value: must not be beside a path: give one of the two'],
    [[{ ...a, hidden: true }], 'columns: must have at least one column that is not hidden'],
    [[a, value('b', 'BIGINT', 'c'), value('c', 'BIGINT', 'b')], 'columns.1.value: depends on itself: "b" needs "c" needs "b"'],
    [[a, value('b', 'BIGINT', 'B + 1')], 'columns.1.value: depends on itself: "b" needs "b"'],
    [
      [a, value('b', 'VARCHAR', 'a')],
      'columns.1.value: is of type BIGINT, and the column of type VARCHAR: write CAST(… AS VARCHAR), whose failures follow cast_failures, or change the type',
    ],
    [
      [s, value('b', 'BIGINT', 's')],
      'columns.1.value: is of type VARCHAR, and the column of type BIGINT: write CAST(… AS BIGINT), whose failures follow cast_failures, or change the type',
    ],
    [[s, value('b', 'BIGINT', 'nope')], 'columns.1.value: "nope" is not a column of this view'],
    [[s, value('b', 'BIGINT', 'length(s')], 'columns.1.value: cannot be parsed: syntax error at end of input'],
    [[s, value('b', 'BIGINT', '(SELECT 1)')], 'columns.1.value: a subquery is not allowed'],
    [
      [s, value('b', 'TIMESTAMP', 'now()')],
      'columns.1.value: "now" is not allowed, because a view gives the same result whenever it runs',
    ],
    [[s, value('b', 'VARCHAR', 'upper(lower(s, s))')], 'columns.1.value: "lower" takes 1 value, not 2'],
  ])('%j', async (columns, message) => {
    const [found] = await problems(columns)
    expect(String(found).slice(0, message.length)).toBe(message)
  })

  test('chains that are too deep', async () => {
    const chain = (length: number) => [
      a,
      ...Array.from({ length }, (_, index) => value(`c${index}`, 'BIGINT', index === 0 ? 'a' : `c${index - 1}`)),
    ]
    expect(await problems(chain(definitionLimits.computedLevelsMax))).toEqual([])
    expect(await problems(chain(definitionLimits.computedLevelsMax + 1))).toEqual([expect.stringContaining('more than 16 deep')])
  })

  test('text that doubles from column to column', async () => {
    const doubling = [
      s,
      ...Array.from({ length: 8 }, (_, index) =>
        value(`c${index}`, 'VARCHAR', index === 0 ? 's || s' : `c${index - 1} || c${index - 1}`),
      ),
    ]
    expect(await problems(doubling)).toContainEqual(expect.stringContaining('makes too much text'))
  })
})

test('hidden columns and computed copies change nothing for the others', { timeout: 60_000 }, async () => {
  const record = fc.record(
    { a: fc.oneof(fc.maxSafeInteger(), fc.string(), fc.constant(null)), s: fc.oneof(fc.string(), fc.double()) },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 20 }), async (records) => {
      const lines = records.map((each) => JSON.stringify(each))
      const plain = await decide({ columns: [a, s], filters: [{ condition: 'a > 0 OR s IS NOT NULL' }] }, lines)
      const columns = [
        { ...a, name: 'x', hidden: true },
        value('a', 'BIGINT', 'x'),
        value('s', 'VARCHAR', 'y'),
        { ...s, name: 'y', hidden: true },
      ]
      const copied = await decide({ columns, filters: [{ condition: 'a > 0 OR s IS NOT NULL' }] }, lines)
      expect(copied.rows).toEqual(plain.rows)
      expect(copied.counts).toEqual(plain.counts)
    }),
    { numRuns: runs(5, 50) },
  )
})
