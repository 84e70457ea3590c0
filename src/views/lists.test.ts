/** Lists that [*] makes, in both forms: aligned with the elements of the array, and packed as in versions that were created before there was a choice. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Definition } from '#model/definition.ts'
import { withListForm } from '#model/definition.ts'
import { decide } from '../../test/support/decide.ts'
import { runs } from '../../test/support/thorough.ts'

const column = (name: string, type: string, path: string) => ({ name, type, path })

const items: Definition = {
  columns: [
    column('skus', 'VARCHAR[]', '$.items[*].sku'),
    column('amounts', 'DECIMAL(9,2)[]', '$.items[*].price.amount'),
    column('tags', 'JSON[]', '$.items[*].tags'),
    column('first_tags', 'VARCHAR[]', '$.items[*].tags[0]'),
    column('at', 'TIMESTAMP[]', '$.items[*].at'),
    column('whole', 'JSON[]', '$.items[*]'),
  ],
}

const records = [
  '{"items":[{"sku":"a","tags":["x"],"at":"2026-11-20T08:15Z"},{"price":{"amount":2}},null,5,{"sku":null,"price":3,"tags":[]}]}',
  '{"items":[{},{}]}',
  '{"items":[]}',
  '{"items":{"sku":"no list"}}',
  '{}',
]

describe('a list of [*]', () => {
  test('has NULL for each element in which the rest of the path finds nothing', async () => {
    const { rows, dlq } = await decide(withListForm(items), records)
    expect(dlq).toEqual([])
    const whole = ['{"sku":"a","tags":["x"],"at":"2026-11-20T08:15Z"}', '{"price":{"amount":2}}', 'null', '5']
    expect(rows).toEqual([
      [
        ['a', null, null, null, null],
        [null, '2.00', null, null, null],
        ['["x"]', null, null, null, '[]'],
        ['x', null, null, null, null],
        ['2026-11-20 08:15:00+00', null, null, null, null],
        [...whole, '{"sku":null,"price":3,"tags":[]}'].map((text) => (text === 'null' ? expect.anything() : text)),
      ],
      [
        [null, null],
        [null, null],
        [null, null],
        [null, null],
        [null, null],
        ['{}', '{}'],
      ],
      [null, null, null, null, null, null],
      [null, null, null, null, null, null],
      [null, null, null, null, null, null],
    ])
  })

  test('has NULL for JSON null, also if its items are JSON', async () => {
    const columns = [column('json', 'JSON[]', '$.i[*].v'), column('text', 'VARCHAR[]', '$.i[*].v')]
    const { rows } = await decide(withListForm({ columns }), ['{"i":[{"v":null},{"v":"null"},{"v":[null]},{}]}'])
    expect(rows).toEqual([
      [
        [null, '"null"', '[null]', null],
        [null, 'null', '[null]', null],
      ],
    ])
  })

  test('of a version without the choice has only what was found, as when it was published', async () => {
    for (const definition of [items, { ...items, lists: 'packed' as const }]) {
      const { rows } = await decide(definition, records)
      expect(rows.map((row) => row.slice(0, 4))).toEqual([
        [['a', null], ['2.00'], ['["x"]', '[]'], ['x']],
        [null, null, null, null],
        [null, null, null, null],
        [null, null, null, null],
        [null, null, null, null],
      ])
    }
  })

  test('goes by the elements of the last [*], which are those of all arrays before it', async () => {
    const nested = withListForm({
      columns: [
        column('a', 'BIGINT[]', '$.o[*].i[*].a'),
        column('b', 'BIGINT[]', '$.o[*].i[*].b'),
        column('n', 'BIGINT[]', '$.o[*].n'),
      ],
    })
    const { rows } = await decide(nested, ['{"o":[{"i":[{"a":1},{"b":2}],"n":1},{},{"i":[]},{"i":[{"a":3,"b":4}]}]}'])
    expect(rows).toEqual([
      [
        ['1', null, '3'],
        [null, '2', '4'],
        ['1', null, null, null],
      ],
    ])
  })

  test('is a failed cast as a whole if one element fails, and quotes all of them; a missing array is a missing value', async () => {
    const columns = [{ ...column('n', 'INTEGER[]', '$.items[*].n'), required: true }]
    const { rows, dlq } = await decide(withListForm({ columns }), [
      '{"items":[{"n":1},{}]}',
      '{"items":[{"n":"x"},{}]}',
      '{"items":[]}',
      '{"items":[{}]}',
    ])
    expect(rows).toEqual([[[1, null]], [[null]]])
    expect(dlq).toMatchObject([
      { error_code: 'cast_failed', message: expect.stringContaining('[\\"x\\",null]') },
      { error_code: 'missing_required', record_index: 2 },
    ])
  })

  test('is read by filters as it is stored', async () => {
    const columns = [column('a', 'VARCHAR[]', '$.items[*].a')]
    const { counts } = await decide(withListForm({ columns, filters: [{ condition: 'len(a) = 2' }] }), [
      '{"items":[{"a":"x"},{}]}',
      '{"items":[{"a":"x"}]}',
    ])
    expect(counts).toMatchObject({ accepted: 1, dropped: 1 })
  })

  test('has as many elements as its array, whatever they are', async () => {
    const element = fc.oneof(
      fc.constantFrom('null', '1', '"x"', '[]', '{}'),
      fc.record({ a: fc.constantFrom(null, 1, 'x'), b: fc.boolean() }, { requiredKeys: [] }).map((each) => JSON.stringify(each)),
    )
    const arrays = fc.sample(fc.array(element, { maxLength: 6 }), runs(200, 2_000))
    const columns = [
      column('a', 'VARCHAR[]', '$.i[*].a'),
      column('b', 'BOOLEAN[]', '$.i[*].b'),
      column('also', 'VARCHAR', '$.i[0].a'),
    ]
    const { rows } = await decide(
      withListForm({ columns }),
      arrays.map((array) => `{"i": [${array.join(', ')}]}`),
      [withListForm({ columns: columns.slice(1) })],
    )
    for (const [index, array] of arrays.entries()) {
      const elements = array.map((each) => JSON.parse(each))
      const expected = (name: 'a' | 'b') => (elements.length === 0 ? null : elements.map((each) => each?.[name] ?? null))
      expect(rows[index]?.slice(0, 2), array.join()).toEqual([
        expected('a')?.map((each) => (each === null ? null : String(each))) ?? null,
        expected('b'),
      ])
    }
  })
})

test('the default is written down for a path that goes on after [*], and only for one', () => {
  const listsOf = (path: string, lists?: 'packed') =>
    withListForm({ columns: [column('a', 'VARCHAR[]', path)], ...(lists && { lists }) }).lists
  expect(['$.a[*].b', '$.a[ * ]["b"]', '$[*][0]'].map((path) => listsOf(path))).toEqual(['aligned', 'aligned', 'aligned'])
  expect(listsOf('$.a[*].b', 'packed')).toBe('packed')
  expect(['$.a', '$.a[*]', '$["[*"]'].map((path) => listsOf(path))).toEqual([undefined, undefined, undefined])
})
