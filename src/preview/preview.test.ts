import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import type { Column, Definition, Filter } from '#model/definition.ts'
import type { PreviewIssue } from '#model/preview.ts'
import { compileView } from '#views/compile.ts'
import { previewView } from './preview.ts'

const column = (name: string, type: string, more: Partial<Column> = {}): Column => ({ name, type, path: `$.${name}`, ...more })

function preview(columns: Column[], samples: readonly unknown[], conditions: readonly string[] = [], timeoutMs = 10_000) {
  const filters: Filter[] = conditions.map((condition) => ({ condition }))
  const texts = samples.map((sample) => (typeof sample === 'string' ? sample : JSON.stringify(sample)))
  return previewView({ definition: { columns, filters }, samples: texts }, { clock: systemClock, timeoutMs })
}

const codes = (issues: readonly PreviewIssue[]) =>
  issues.map(({ sample_index, column: name, code }) => [sample_index, name, code])

describe('a preview', () => {
  test('shows the rows that delivery would write, with column statistics', async () => {
    const columns = [
      column('event', 'VARCHAR', { required: true }),
      column('amount', 'DOUBLE'),
      column('count', 'BIGINT'),
      column('tags', 'INTEGER[]'),
      column('at', 'TIMESTAMP'),
      column('when', 'TIMESTAMP', { path: '$$.ingested_at' }),
    ]
    const result = await preview(columns, [
      { event: 'a', amount: 1.5, count: 3, tags: [1, 2], at: '2026-11-20T08:00:00.500Z' },
      { event: 'b', count: '9007199254740993' },
      { event: 'a', amount: 1.5, count: 3 },
    ])
    expect(result).toMatchObject({ success: true, rowCount: 3, warnings: [], errors: [] })
    expect(result.rows[0]).toMatchObject({ event: 'a', amount: 1.5, count: '3', tags: [1, 2], at: '2026-11-20T08:00:00.500000Z' })
    expect(result.rows[1]).toMatchObject({ event: 'b', amount: null, count: '9007199254740993', tags: null })
    expect(result.columns.slice(0, 4)).toEqual([
      { name: 'event', type: 'VARCHAR', nullCount: 0, totalCount: 3, nullRate: 0, sampleValues: ['a', 'b'] },
      { name: 'amount', type: 'DOUBLE', nullCount: 1, totalCount: 3, nullRate: 1 / 3, sampleValues: [1.5] },
      { name: 'count', type: 'BIGINT', nullCount: 0, totalCount: 3, nullRate: 0, sampleValues: ['3', '9007199254740993'] },
      { name: 'tags', type: 'INTEGER[]', nullCount: 2, totalCount: 3, nullRate: 2 / 3, sampleValues: [[1, 2]] },
    ])
    expect(result.executionTimeMs).toBeGreaterThan(0)
  })

  test.each([
    ['BOOLEAN', true, true],
    ['TINYINT', -7, -7],
    ['UINTEGER', 4_294_967_295, 4_294_967_295],
    ['BIGINT', 1, '1'],
    ['UBIGINT', 1, '1'],
    ['HUGEINT', 1, '1'],
    ['UHUGEINT', 1, '1'],
    ['DECIMAL(9,2)', 1, '1.00'],
    ['FLOAT', 0.1, 0.1],
    ['FLOAT', 16_777_217, 16_777_216],
    ['FLOAT', '3.4028235e38', 3.4028235e38],
    ['FLOAT', '1e-45', 1e-45],
    ['FLOAT', '-0.0', 0],
    ['FLOAT', 'inf', 'Infinity'],
    ['DOUBLE', 0.1, 0.1],
    ['DOUBLE', 'nan', 'NaN'],
    ['VARCHAR', 1.5, '1.5'],
    ['DATE', '9999-12-31', '9999-12-31'],
    ['DATE', '0044-03-15', '0044-03-15'],
    ['TIME', '08:30:00.5', '08:30:00.5'],
    ['TIMESTAMP', '2026-11-20', '2026-11-20T00:00:00.000000Z'],
    ['TIMESTAMP', '2026-11-20T08:00:00.5+02:00', '2026-11-20T06:00:00.500000Z'],
    ['TIMESTAMPTZ', '2026-11-20T08:00:00.5+02:00', '2026-11-20T06:00:00.500000Z'],
    ['UUID', 'F81D4FAE7DEC11D0A76500A0C91E6BF6', 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'],
    ['JSON', { a: [1] }, '{"a":[1]}'],
    ['BIGINT[]', [1, null], ['1', null]],
    ['FLOAT[]', [0.1, 'nan'], [0.1, 'NaN']],
    ['TIMESTAMP[][]', [['2026-11-20T08:00:00Z']], [['2026-11-20T08:00:00.000000Z']]],
  ])('shows %s %j in the form of the type', async (type, v, expected) => {
    const { rows, columns } = await preview([column('v', type)], [{ v }])
    expect(rows).toEqual([{ v: expected }])
    expect(columns[0]?.sampleValues).toEqual([expected])
  })

  test('gives the reason for each sample that goes to the dead letter queue', async () => {
    const columns = [column('a', 'VARCHAR', { required: true }), column('n', 'INTEGER', { cast_failures: 'dlq' })]
    const result = await preview(columns, [{ a: 'x', n: 1 }, 'no json', { n: 1 }, { a: 'x', n: 'many' }, ''])
    expect(result).toMatchObject({ success: false, rowCount: 1 })
    expect(codes(result.errors)).toEqual([
      [1, null, 'invalid_json'],
      [2, 'a', 'missing_required'],
      [3, 'n', 'cast_failed'],
      [4, null, 'invalid_json'],
    ])
    expect(result.errors[2]?.message).toContain('"many"')
    expect(result.warnings).toEqual([])
  })

  test('warns about a value that becomes NULL', async () => {
    const result = await preview([column('n', 'INTEGER')], [{ n: 1 }, { n: 'many' }])
    expect(result).toMatchObject({ success: true, rowCount: 2, rows: [{ n: 1 }, { n: null }] })
    expect(result.warnings).toEqual([
      { sample_index: 1, column: 'n', code: 'cast_failed', message: expect.stringContaining('the value "many"') },
    ])
  })

  test('quotes a list of values as JSON, also in errors', async () => {
    const column = (name: string) => ({ name, type: 'INTEGER[]', path: '$.l[*].n' })
    const { errors, warnings } = await preview([column('w')], [{ l: [{ n: 1 }, { n: 'x' }] }, { l: [{ n: 1 }] }])
    expect(errors).toEqual([])
    expect(warnings[0]?.message).toContain(JSON.stringify('["1","x"]'))
    const refused = await preview([{ ...column('e'), required: true }], [{ l: [{ n: 1 }, { n: 'x' }] }, { l: [{ n: 1 }] }])
    expect(refused.errors[0]?.message).toContain(JSON.stringify('["1","x"]'))
  })

  test('warns once about a path that no sample has, also for lists and the envelope', async () => {
    const columns = [
      column('a', 'VARCHAR', { path: '$.b' }),
      column('none', 'VARCHAR', { path: '$.a' }),
      column('items', 'VARCHAR[]', { path: '$.items[*].id' }),
      column('topic', 'VARCHAR', { path: '$$.topic' }),
      column('json', 'JSON', { path: '$.a' }),
    ]
    const result = await preview(columns, [
      { b: 1, a: null },
      { b: 2, items: [] },
    ])
    expect(codes(result.warnings)).toEqual([
      [null, 'none', 'path_never_found'],
      [null, 'items', 'path_never_found'],
      [null, 'topic', 'path_never_found'],
      [null, 'json', 'path_never_found'],
    ])
  })

  test('calls a field that only an expression reads no column', async () => {
    const computed: Column = { name: 'topic', type: 'VARCHAR', value: 'upper($$.topic)' }
    const { warnings } = await preview([computed], [{ a: 1 }])
    expect(warnings.map(({ column: name, message }) => [name, message])).toEqual([
      ['topic', 'no sample has a value for column "topic"'],
      [null, 'no sample has $$.topic: samples are bodies of records, without an envelope'],
    ])
  })

  test('warns about a cast that always fails, whatever happens to the rows', async () => {
    const columns = [column('n', 'INTEGER', { cast_failures: 'dlq' }), column('at', 'TIMESTAMP'), column('l', 'INTEGER[]')]
    const result = await preview(columns, [{ n: 'x', at: 'y', l: ['z'] }, { n: 'x' }])
    expect(codes(result.warnings)).toEqual([
      [null, 'n', 'cast_always_fails'],
      [null, 'at', 'cast_always_fails'],
      [null, 'l', 'cast_always_fails'],
    ])
    expect(codes(result.errors)).toEqual([
      [0, 'n', 'cast_failed'],
      [1, 'n', 'cast_failed'],
    ])
  })

  test('warns about filters that keep no sample, and counts the unknown results', async () => {
    const columns = [column('a', 'VARCHAR'), column('n', 'INTEGER')]
    const dropped = await preview(columns, [{ a: 'x', n: 1 }, { a: 'x' }], ["a = 'x'", 'n > 5'])
    expect(dropped).toMatchObject({ success: true, rowCount: 0, rows: [] })
    expect(dropped.counts).toEqual({ processed: 2, accepted: 0, dropped: 2, dlq: 0, failed: 0, duplicates: 0 })
    expect(codes(dropped.warnings)).toEqual([[null, null, 'filter_keeps_nothing']])
    expect(dropped.warnings[0]?.message).toContain('for 1 of them they are unknown')
    const kept = await preview(columns, [{ a: 'x', n: 9 }, { a: 'x' }], ['n > 5'])
    expect(kept).toMatchObject({ rowCount: 1, warnings: [] })
  })

  test('gives no other warnings if all samples are unreadable', async () => {
    const result = await preview([column('a', 'VARCHAR')], ['{', 'x'], ["a = 'x'"])
    expect(result).toMatchObject({ success: false, rowCount: 0, warnings: [], columns: [{ nullRate: 0, totalCount: 0 }] })
  })

  test('rejects a definition that does not compile', async () => {
    await expect(preview([column('a', 'INTEGR')], [{}])).rejects.toThrow(expect.objectContaining({ code: 'validation_error' }))
  })

  test('reports a timeout', async () => {
    const big = JSON.stringify({ a: 'x'.repeat(60_000) })
    const columns = Array.from({ length: 50 }, (_, index) => column(`c${index}`, 'INTEGER', { path: `$.a[${index}]` }))
    const result = await preview(
      columns,
      Array.from({ length: 100 }, () => big),
      [],
      1,
    )
    expect(result).toMatchObject({ success: false, rows: [], errors: [{ sample_index: null, code: 'timeout' }] })
    expect(result.counts).toEqual({ processed: 100, accepted: 0, dropped: 0, dlq: 0, failed: 100, duplicates: 0 })
    expect(result.compiledSql).toMatch(/^SELECT/)
    expect(result.executionTimeMs).toBeGreaterThanOrEqual(1)
  })

  test('reports rows that are too large for a response', async () => {
    const nested = (depth: number, leaf: string): string =>
      depth === 0 ? JSON.stringify(leaf) : `{"a":${nested(depth - 1, leaf)}}`
    const sample = nested(50, 'x'.repeat(60_000))
    const columns = Array.from({ length: 50 }, (_, index) =>
      column(`c${index}`, 'VARCHAR', { path: `$${'.a'.repeat(index + 1)}` }),
    )
    const few = await preview(columns, [sample])
    expect(few).toMatchObject({ success: true, rowCount: 1 })
    const many = await preview(
      columns,
      Array.from({ length: 10 }, () => sample),
    )
    expect(many).toMatchObject({ success: false, rowCount: 0, errors: [{ code: 'result_too_large' }] })
  })

  test('reports that it ran out of memory', async () => {
    const nested = (depth: number, leaf: string): string =>
      depth === 0 ? JSON.stringify(leaf) : `{"a":${nested(depth - 1, leaf)}}`
    const sample = nested(60, 'x'.repeat(64_000))
    const columns = Array.from({ length: 60 }, (_, index) =>
      column(`c${index}`, 'VARCHAR', { path: `$${'.a'.repeat(index + 1)}` }),
    )
    const result = await preview(
      columns,
      Array.from({ length: 100 }, () => sample),
    )
    expect(result).toMatchObject({ success: false, rows: [] })
    expect(['view_failed', 'result_too_large']).toContain(result.errors[0]?.code)
  })
})

test('the returned SQL is the compiled one, formatted', async () => {
  const columns = [column('event type', 'VARCHAR', { path: "$['it\\'s (SELECT, FROM']" }), column('n', 'INTEGER')]
  const { compiledSql } = await preview(columns, [{}], ['n > 5'])
  const { sql } = await compileView({ columns, filters: [{ condition: 'n > 5' }] })
  const bare = (text: string) => text.replace(/\s+/g, '')
  expect(bare(compiledSql)).toContain(bare(sql))
  expect(compiledSql).toContain('AS "event type"')
  expect(compiledSql.split('\n').length).toBeGreaterThan(10)
})

describe('a preview of a view that expands an array', () => {
  const columns = [column('sku', 'VARCHAR', { path: '$item.sku', required: true }), column('n', 'INTEGER', { path: '$item.n' })]
  const expanded = (samples: readonly unknown[], conditions: readonly string[] = []) =>
    previewView(
      {
        definition: { expand: '$.items[*]', columns, filters: conditions.map((condition) => ({ condition })) },
        samples: samples.map((sample) => JSON.stringify(sample)),
      },
      { clock: systemClock, timeoutMs: 10_000 },
    )

  test('shows the rows of each sample, and what became of each element', async () => {
    const result = await expanded(
      [
        {
          items: [
            { sku: 'a', n: 1 },
            { sku: 'b', n: 'x' },
            { sku: 'c', n: 0 },
          ],
        },
        { items: [{ sku: 'd', n: 1 }, { n: 2 }] },
        { items: [] },
        { items: 1 },
      ],
      ['n IS NULL OR n > 0'],
    )
    expect(result).toMatchObject({
      success: false,
      rowCount: 2,
      rows: [
        { sku: 'a', n: 1 },
        { sku: 'b', n: null },
      ],
      counts: { processed: 4, accepted: 1, dropped: 1, dlq: 2, failed: 0 },
      errors: [
        { sample_index: 1, code: 'missing_required', column: 'sku', item: '$.items[1]' },
        { sample_index: 3, code: 'expand_failed', column: null, message: 'the value at $.items is a number and not an array' },
      ],
      warnings: [{ sample_index: 0, code: 'cast_failed', column: 'n', item: '$.items[1]' }],
    })
    const none = { row: null, error_code: null, column: null }
    expect(result.items).toEqual([
      { ...none, sample_index: 0, item: '$.items[0]', outcome: 'accepted', row: 0 },
      { ...none, sample_index: 0, item: '$.items[1]', outcome: 'accepted', row: 1 },
      { ...none, sample_index: 0, item: '$.items[2]', outcome: 'dropped' },
      { ...none, sample_index: 1, item: '$.items[0]', outcome: 'dlq' },
      { ...none, sample_index: 1, item: '$.items[1]', outcome: 'dlq', error_code: 'missing_required', column: 'sku' },
    ])
  })

  test('says how many elements are not listed', async () => {
    const of = (count: number) => ({ items: Array.from({ length: count }, (_, n) => ({ sku: n, n })) })
    const { items, rowCount, warnings } = await expanded([of(700), of(700)])
    expect([items?.length, rowCount]).toEqual([1_000, 1_400])
    expect(warnings).toMatchObject([
      { code: 'items_cut', message: 'only the first 1000 of 1400 elements are listed; rows and counts are of all' },
    ])
    expect((await expanded([of(500), of(500)])).warnings).toEqual([])
  })

  test('says that no sample has an element', async () => {
    const result = await expanded([{}, { items: [] }, { items: null }])
    expect(result.warnings).toMatchObject([{ code: 'expand_finds_nothing' }])
    expect(result).toMatchObject({ success: true, items: [], counts: { dropped: 3 } })
  })

  test('of very many rows fails', async () => {
    const items = Array.from({ length: 5_001 }, () => ({ sku: 1 }))
    const result = await expanded(Array.from({ length: 4 }, () => ({ items })))
    expect(result.errors).toMatchObject([{ code: 'result_too_large', message: expect.stringContaining('20000 rows') }])
  })
})

describe('a preview of a view with partition_by', () => {
  const preview = (definition: Definition, samples: readonly unknown[]) =>
    previewView({ definition, samples: samples.map((each) => JSON.stringify(each)) }, { clock: systemClock, timeoutMs: 10_000 })

  test('refuses values that cannot name folders, as delivery would', async () => {
    const definition: Definition = { columns: [column('id', 'BIGINT'), column('country', 'VARCHAR')], partition_by: ['country'] }
    const values = ['DE', 'x'.repeat(300), '', '__HIVE_DEFAULT_PARTITION__', 'a\0b', null]
    const result = await preview(
      definition,
      values.map((country, id) => ({ id, country })),
    )
    expect(result.rows.map(({ id }) => id)).toEqual(['0', '2', '5'])
    expect(result.counts).toMatchObject({ processed: 6, accepted: 3, dlq: 3 })
    expect(result.errors).toMatchObject([
      { sample_index: 1, code: 'no_partition', message: expect.stringContaining('which have at most 180 bytes') },
      { sample_index: 3, code: 'no_partition', message: expect.stringContaining('stands for NULL') },
      { sample_index: 4, code: 'no_partition', message: expect.stringContaining('U+0000') },
    ])
  })

  test('refuses a record as a whole, unless the value is in a duplicate of the record or another error is first', async () => {
    const definition: Definition = {
      expand: '$.a[*]',
      columns: [
        { name: 'n', type: 'INTEGER', path: '$item.n', cast_failures: 'dlq' },
        { name: 'key', type: 'VARCHAR', path: '$item.k' },
        { name: 'c', type: 'VARCHAR', path: '$item.c' },
      ],
      partition_by: ['c'],
      dedupe_by: ['key'],
    }
    const c = 'x'.repeat(300)
    const result = await preview(definition, [
      {
        a: [
          { n: 1, k: 'a', c: 'DE' },
          { n: 2, k: 'b', c },
        ],
      },
      {
        a: [
          { n: 1, k: 'a', c: 'DE' },
          { n: 2, k: 'a', c },
        ],
      },
      {
        a: [
          { n: 1, k: 'a', c },
          { n: 'none', k: 'b', c: 'DE' },
        ],
      },
    ])
    expect(result.counts).toMatchObject({ accepted: 1, dlq: 2 })
    expect(result.errors).toMatchObject([
      { sample_index: 0, code: 'no_partition' },
      { sample_index: 2, code: 'cast_failed', item: '$.a[1]' },
    ])
    expect(result.errors[0]).not.toHaveProperty('item')
    expect(result.items?.slice(0, 2)).toMatchObject([
      { outcome: 'dlq', error_code: null },
      { outcome: 'dlq', error_code: 'no_partition', column: null },
    ])
  })
})

describe('a preview of a view with dedupe_by', () => {
  const preview = (definition: Definition, samples: readonly unknown[]) =>
    previewView({ definition, samples: samples.map((each) => JSON.stringify(each)) }, { clock: systemClock, timeoutMs: 10_000 })
  const columns = [column('id', 'VARCHAR', { hidden: true }), column('n', 'INTEGER')]

  test('leaves out and counts rows with the key of one before them', async () => {
    const samples = [{ id: 'a', n: 1 }, { id: 'b', n: 2 }, { id: 'a', n: 'none' }, { n: 4 }, { n: 5 }, { id: 'b', n: 6 }]
    const { rows, counts, warnings, success } = await preview({ columns, dedupe_by: ['id'] }, samples)
    expect(rows.map(({ n }) => n)).toEqual([1, 2, 4, 5])
    expect(counts).toEqual({ processed: 6, accepted: 4, dropped: 2, dlq: 0, failed: 0, duplicates: 2 })
    // The cast that failed is of a row that is not written.
    expect([success, warnings]).toEqual([true, []])
  })

  test('compares the rows of all samples if it expands an array', async () => {
    const expanded = { expand: '$.l[*]', columns: [column('id', 'VARCHAR', { path: '$item' })], dedupe_by: ['id'] }
    const { rows, counts, items } = await preview(expanded, [{ l: ['a', 'b', 'a'] }, { l: ['b'] }, { l: ['a', 'c'] }])
    expect(rows.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
    expect(counts).toEqual({ processed: 3, accepted: 2, dropped: 1, dlq: 0, failed: 0, duplicates: 3 })
    expect(items?.map(({ outcome }) => outcome)).toEqual(['accepted', 'accepted', 'dropped', 'dropped', 'dropped', 'accepted'])
  })

  test('says that dedupe_within is not applied', async () => {
    const shown = columns.map(({ hidden: _, ...each }) => each)
    const { warnings } = await preview({ columns: shown, dedupe_by: ['id'], dedupe_within: '24h' }, [{ id: 'a', n: 1 }])
    expect(warnings).toMatchObject([
      { sample_index: null, code: 'window_not_applied', message: expect.stringContaining('dedupe_within') },
    ])
  })
})
