/** Views that make many rows of one record. */
import { describe, expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import { KiB, MiB } from '#lib/bytes.ts'
import type { Column, Definition } from '#model/definition.ts'
import { fromSentView, toSentView } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'
import { decide } from '../../test/support/decide.ts'
import { compileView } from './compile.ts'

const column = (name: string, type: string, path: string, more: Partial<Column> = {}): Column => ({ name, type, path, ...more })

const orders: Definition = {
  expand: '$.items[*]',
  columns: [
    column('id', 'BIGINT', '$.id'),
    column('at', 'BIGINT', '$$.item_index'),
    column('sku', 'VARCHAR', '$item.sku', { required: true }),
    column('n', 'INTEGER', '$item.n', { cast_failures: 'dlq' }),
  ],
}

const nested: Definition = {
  expand: '$.orders[*].lines.items[*]',
  columns: [
    column('id', 'BIGINT', '$.id'),
    column('at', 'BIGINT', '$$.item_index'),
    column('order_no', 'BIGINT', '$parent.no'),
    column('tags', 'VARCHAR[]', '$parent.tags[*].t'),
    column('sku', 'VARCHAR', '$item.sku', { required: true }),
  ],
}

async function problems(definition: unknown): Promise<readonly string[]> {
  try {
    await compileView(definition as Definition)
    return []
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return (error.errors ?? []).map(({ path, message }) => `${path}: ${message}`)
  }
}

describe('rows', () => {
  test('may be of scalars, null, lists and objects', async () => {
    const definition = {
      expand: '$[*]',
      columns: [
        column('text', 'VARCHAR', '$item'),
        column('json', 'JSON', '$item'),
        column('second', 'VARCHAR', '$item[1]'),
        column('list', 'INTEGER[]', '$item[*].a'),
      ],
    }
    const { rows } = await decide(definition, ['[1, "x", null, [1, 2], {"a": 3}, [{"a":1},{}]]'])
    expect(rows).toEqual([
      ['1', '1', null, null],
      ['x', '"x"', null, null],
      [null, null, null, null],
      ['[1,2]', '[1,2]', '2', null],
      ['{"a":3}', '{"a":3}', null, null],
      ['[{"a":1},{}]', '[{"a":1},{}]', '{}', [1]],
    ])
  })

  test('of an outer element with very many take no more than its texts: each of twenty records is accepted', async () => {
    const items = Array.from({ length: definitionLimits.expandedRowsMax }, (_, at) => ({ sku: `k${at}` }))
    const records = Array.from({ length: 20 }, (_, id) => JSON.stringify({ id, orders: [{ no: id, lines: { items } }] }))
    const { rows, dlq } = await decide(nested, records)
    expect([rows.length, dlq.length]).toEqual([20 * definitionLimits.expandedRowsMax, 0])
  })

  test('of two arrays have the outer element, and are counted over both', async () => {
    const { rows, dlq, counts } = await decide({ ...nested, lists: 'aligned' }, [
      '{"id":1,"orders":[{"no":1,"lines":{"items":[{"sku":"a"},{"sku":"b"}]},"tags":[{"t":"x"},{}]},{"no":2},{"no":3,"lines":{"items":[{"sku":"c"}]}},5,null]}',
      '{"id":2,"orders":[{"no":4,"lines":{"items":[{"sku":"d"},{"x":1}]}},{"no":"five","lines":{"items":[{}]}}]}',
    ])
    expect(rows).toEqual([
      ['1', '0', '1', ['x', null], 'a'],
      ['1', '1', '1', ['x', null], 'b'],
      ['1', '2', '3', null, 'c'],
    ])
    expect(dlq).toMatchObject([
      {
        record_index: 1,
        error_code: 'missing_required',
        column: 'sku',
        item: '$.orders[0].lines.items[1]',
        message: 'required column "sku" has no value in the record in the element $.orders[0].lines.items[1]',
      },
    ])
    expect(counts).toMatchObject({ processed: 2, accepted: 1, dropped: 0, dlq: 1, rows: 3 })
  })

  test('are filtered and computed one by one', async () => {
    const definition = {
      ...orders,
      columns: [
        ...orders.columns,
        { name: 'label', type: 'VARCHAR', value: "concat(CAST(id AS VARCHAR), '-', sku, CAST($$.item_index AS VARCHAR))" },
      ],
      filters: [{ condition: 'n > 1 AND $$.item_index < 3' }],
    }
    const { rows, counts } = await decide(definition, [
      '{"id":1,"items":[{"sku":"a","n":1},{"sku":"b","n":2},{"sku":"c"},{"sku":"d","n":9}]}',
      '{"id":2,"items":[{"sku":"e","n":1}]}',
      '{"id":3,"items":[{"sku":"f"}]}',
    ])
    expect(rows).toEqual([['1', '1', 'b', 2, '1-b1']])
    expect(counts).toMatchObject({ processed: 3, accepted: 1, dropped: 2, dlq: 0, rows: 1 })
  })

  test('have lists of the whole record, and the envelope', async () => {
    const definition = {
      ...orders,
      columns: [
        column('skus', 'VARCHAR[]', '$.items[*].sku'),
        column('topic', 'VARCHAR', '$$.topic'),
        column('sku', 'VARCHAR', '$item.sku'),
      ],
      lists: 'aligned' as const,
    }
    const { rows } = await decide(definition, ['{"items":[{"sku":"a"},{}]}'])
    expect(rows).toEqual([
      [['a', null], 't/0', 'a'],
      [['a', null], 't/0', null],
    ])
  })
})

describe('a record', () => {
  test('is refused as a whole, with the first element that has an error', async () => {
    const { rows, dlq, counts } = await decide(orders, [
      '{"id":1,"items":[{"sku":"a"},{"sku":"b","n":"many"},{"n":1}]}',
      '{"id":2,"items":[{"sku":"c"}]}',
      'no json',
    ])
    expect(rows).toEqual([['2', '0', 'c', null]])
    expect(dlq).toMatchObject([
      {
        record_index: 0,
        error_code: 'cast_failed',
        column: 'n',
        item: '$.items[1]',
        message: 'the value "many" of column "n" is not of type INTEGER in the element $.items[1]',
        record: '{"id":1,"items":[{"sku":"a"},{"sku":"b","n":"many"},{"n":1}]}',
      },
      { record_index: 2, error_code: 'invalid_json', item: null },
    ])
    expect(counts).toMatchObject({
      processed: 3,
      accepted: 1,
      dropped: 0,
      dlq: 2,
      rows: 1,
      errors: { cast_failed: 1, invalid_json: 1 },
    })
  })

  test('with another value than an array is refused', async () => {
    const values = ['{}', '{"sku":"a"}', '"[]"', '5', 'true', '1.5']
    const { dlq, counts } = await decide(
      orders,
      values.map((value) => `{"items":${value}}`),
    )
    const kinds = ['an object', 'an object', 'text', 'a number', 'a boolean', 'a number']
    expect(dlq.map(({ error_code, message, column, item }) => [error_code, message, column, item])).toEqual(
      kinds.map((kind) => ['expand_failed', `the value at $.items is ${kind} and not an array`, null, null]),
    )
    expect(counts).toMatchObject({ dlq: 6, errors: { expand_failed: 6 } })
    const inner = await decide(nested, ['{"orders":[{},{"lines":{"items":{}}}]}'])
    expect(inner.dlq).toMatchObject([
      { error_code: 'expand_failed', message: 'the value at $.orders[1].lines.items is an object and not an array' },
    ])
  })

  test('counts what failed casts made NULL in its rows, unless it is refused', async () => {
    const definition: Definition = {
      ...orders,
      columns: [
        column('sku', 'VARCHAR', '$item.sku', { required: true }),
        column('n', 'INTEGER', '$item.n'),
        column('id', 'BIGINT', '$.id'),
      ],
      filters: [{ condition: "sku <> 'gone'" }],
    }
    const { counts, quality, rows } = await decide(definition, [
      '{"id":"x","items":[{"sku":"a","n":"?"},{"sku":"b","n":2},{"sku":"gone","n":"?"}]}',
      '{"id":"x","items":[{"sku":"c","n":"?"},{"n":"?"}]}',
    ])
    expect(rows).toEqual([
      ['a', null, null],
      ['b', 2, null],
    ])
    expect(counts).toMatchObject({ accepted: 1, dlq: 1, rows: 2, castNulls: 3 })
    expect(quality.columns).toMatchObject([
      { name: 'sku', values: 2, nulls: 0, missing: 1 },
      { name: 'n', values: 1, nulls: 1, cast_nulls: 1, min: '2' },
      { name: 'id', values: 0, nulls: 2, cast_nulls: 2 },
    ])
  })

  test('takes what its elements read', async () => {
    const { quality } = await decide(nested, [
      '{"id":1,"new":1,"orders":[{"no":1,"note":"x","lines":{"items":[{"sku":"a","color":"red"}]}}]}',
    ])
    expect(quality.unmapped.map(({ path }) => path).toSorted()).toEqual([
      '$.new',
      '$.orders[*].lines.items[*].color',
      '$.orders[*].note',
    ])
  })
})

describe('beside other views', () => {
  test('has rows of its own', async () => {
    const plain: Definition = { columns: [column('id', 'BIGINT', '$.id', { required: true })] }
    const records = ['{"id":1,"items":[{"sku":"a"},{"sku":"b"}]}', '{"items":[{"sku":"c"}]}']
    for (const beside of [[plain], [plain, plain], [nested, plain, orders, plain]]) {
      const { rows } = await decide(orders, records, beside)
      expect(rows.map((row) => row[2])).toEqual(['a', 'b', 'c'])
      const other = await decide(plain, records, [...beside, orders])
      expect(other.rows).toEqual([['1']])
      expect(other.counts).toMatchObject({ accepted: 1, dlq: 1, rows: 1 })
    }
  })
})

describe('hostile records', () => {
  const { expandedRowsMax } = definitionLimits

  test('with more rows than are allowed are refused', async () => {
    const items = (count: number) => `[${Array.from({ length: count }, () => '{"sku":"a"}').join(',')}]`
    const { counts, dlq } = await decide(orders, [
      `{"items":${items(expandedRowsMax)}}`,
      `{"items":${items(expandedRowsMax + 1)}}`,
    ])
    expect(counts).toMatchObject({ accepted: 1, dlq: 1, rows: expandedRowsMax })
    expect(dlq).toMatchObject([
      {
        error_code: 'expand_failed',
        record_index: 1,
        message: `the record has ${expandedRowsMax + 1} elements at $.items[*], and each is a row: at most ${expandedRowsMax} are allowed`,
      },
    ])
    const order = `{"lines":{"items":${items(expandedRowsMax / 2 + 1)}}}`
    const empty = Array.from({ length: expandedRowsMax + 1 }, () => '1').join(',')
    const two = await decide(nested, [`{"orders":[${order},${order}]}`, `{"orders":[${empty}]}`, `{"orders":[${order}]}`])
    expect(two.dlq.map(({ message }) => message)).toEqual([
      `the record has ${expandedRowsMax + 2} elements at $.orders[*].lines.items[*], and each is a row: at most ${expandedRowsMax} are allowed`,
      `the array at $.orders has ${expandedRowsMax + 1} elements: at most ${expandedRowsMax} are allowed`,
    ])
    expect(two.counts).toMatchObject({ accepted: 1, rows: expandedRowsMax / 2 + 1 })
  })

  test('that would repeat much text in their rows are refused', async () => {
    const text = 'x'.repeat(100 * KiB)
    const items = Array.from({ length: 1_000 }, () => '{"sku":"a"}').join(',')
    const definition = { ...orders, columns: [...orders.columns, column('text', 'VARCHAR', '$.text')] }
    const { dlq, counts } = await decide(definition, [
      `{"text":"${text}","items":[${items}]}`,
      `{"text":"${text}","items":[{"sku":"a"}]}`,
      `{"text":"short","items":[${items}]}`,
    ])
    expect(dlq).toMatchObject([{ error_code: 'expand_failed', record_index: 0 }])
    expect(dlq[0]?.['message']).toMatch(/^its 1000 rows would repeat 102400000 bytes of text, and the record has \d+: /)
    expect(counts).toMatchObject({ accepted: 2, dlq: 1, rows: 1_001 })
    const ofParent = { ...nested, columns: [...nested.columns, column('text', 'VARCHAR', '$parent.text')] }
    const order = (text: string, items: string) => `{"text":"${text}","lines":{"items":[${items}]}}`
    const two = await decide(ofParent, [
      `{"orders":[${order(text, items)}]}`,
      `{"orders":[${order(text, '{"sku":"a"}')},${order('short', items)}]}`,
    ])
    expect(two.dlq).toMatchObject([{ error_code: 'expand_failed', record_index: 0 }])
    expect(two.counts).toMatchObject({ accepted: 1, rows: 1_001 })
  })

  test('of which expressions would make much text are refused', async () => {
    const text = 'x'.repeat(8 * KiB)
    const items = Array.from({ length: 50 }, () => '{"sku":"a"}').join(',')
    const made = { name: 'made', type: 'VARCHAR', value: `concat(${Array.from({ length: 60 }, () => 'text').join(', ')}, sku)` }
    const columns = [...orders.columns, column('text', 'VARCHAR', '$.text')]
    const record = `{"text":"${text}","items":[${items}]}`
    expect((await decide({ ...orders, columns }, [record])).counts).toMatchObject({ accepted: 1, rows: 50 })
    expect((await decide({ ...orders, columns: [...columns, made] }, [record])).counts).toMatchObject({ dlq: 1 })
  })

  test('with deep nesting and long lists are decided', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const { counts } = await decide(orders, [
      `{"items":${deep}}`,
      `{"items":[{"sku":${deep}}]}`,
      `{"items":[${Array.from({ length: 9_999 }, (_, n) => `{"sku":"${n}"}`).join(',')}]}`,
      `{"items":[${'0,'.repeat(400_000)}0]}`,
    ])
    expect(counts).toMatchObject({ processed: 4, accepted: 2, dlq: 2, rows: 10_000 })
  })

  test('that do not fit in memory together are decided in pieces, and one that does not fit alone is too complex', async () => {
    const big = (n: number) =>
      `{"id":${n},"items":[${Array.from({ length: 2_000 }, () => '{"sku":"abcdefgh","n":7}').join(',')}]}`
    const dense = `{"id":-1,"items":[{"sku":"a","x":[${'0,'.repeat(450_000)}0]}]}`
    const records = [...Array.from({ length: 40 }, (_, n) => big(n)), dense]
    const wide = {
      ...orders,
      columns: [...orders.columns, ...Array.from({ length: 8 }, (_, n) => column(`l${n}`, 'VARCHAR[]', `$item.x[*].y${n}`))],
    }
    const { counts, rows } = await decide(wide, records, [], undefined, 64 * MiB)
    expect(counts).toMatchObject({ processed: 41, accepted: 40, dlq: 1, rows: 80_000, errors: { too_complex: 1 } })
    expect([rows[0]?.[0], rows.at(-1)?.[0]]).toEqual(['0', '39'])
  })
})

describe('a definition', () => {
  test.each<[string, object, readonly string[]]>([
    [
      'an item without expand',
      { columns: [column('a', 'VARCHAR', '$item.a')] },
      ['columns.0.path: needs expand in the definition'],
    ],
    ['an index without expand', { columns: [column('a', 'BIGINT', '$$.item_index')] }, ['columns.0.path: needs expand']],
    [
      'an index in expressions without expand',
      {
        columns: [column('a', 'BIGINT', '$.a'), { name: 'b', type: 'BIGINT', value: '$$.item_index' }],
        filters: [{ condition: '$$.item_index > a' }],
      },
      ['columns.1.value: $$.item_index needs expand', 'filters.0.condition: $$.item_index needs expand'],
    ],
    [
      'a parent of one array',
      { expand: '$.a[*]', columns: [column('a', 'VARCHAR', '$parent.a')] },
      ['columns.0.path: needs an expand with two [*]'],
    ],
    ['no array', { expand: '$.a', columns: [column('a', 'VARCHAR', '$item.a')] }, ['expand: must end with [*], such as $.a[*]']],
    ['a path after the array', { expand: '$.a[*].b', columns: [column('a', 'VARCHAR', '$item')] }, ['expand: must end with [*]']],
    [
      'three arrays',
      { expand: '$.a[*].b[*][*]', columns: [column('a', 'VARCHAR', '$item')] },
      ['expand: must have at most two [*]'],
    ],
    [
      'the envelope',
      { expand: '$$.topic', columns: [column('a', 'VARCHAR', '$item')] },
      ['expand: must be a path in the record'],
    ],
    ['an item', { expand: '$item.a[*]', columns: [column('a', 'VARCHAR', '$item')] }, ['expand: must be a path in the record']],
    ['no path', { expand: 'items', columns: [column('a', 'VARCHAR', '$item')] }, ['expand: must start with $']],
    ['a list', { expand: '$.a[*]', columns: [column('a', 'VARCHAR', '$item.b[*]')] }, ['columns.0.type: must be a list']],
    [
      'a list of an index',
      { expand: '$.a[*]', columns: [column('a', 'BIGINT[]', '$$.item_index')] },
      ['columns.0.type: must be a scalar'],
    ],
    ['another name', { expand: '$.a[*]', columns: [column('a', 'BIGINT', '$items.a')] }, ['columns.0.path: expected . or [']],
  ])('with %s is refused', async (_, definition, expected) => {
    const found = await problems(definition)
    expect(found).toHaveLength(expected.length)
    for (const [index, text] of expected.entries()) expect(found[index]).toContain(text)
  })

  test('reaches nodes that know it, and fails on others', () => {
    const view = { id: 'v', name: 'v', version: 1, definition: orders }
    const sent = toSentView(view)
    expect(sent.definition.columns).toHaveLength(1)
    expect(JSON.stringify(sent.definition)).not.toContain('expand')
    expect(fromSentView(sent)).toEqual(view)
  })
})
