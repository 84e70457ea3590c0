import { describe, expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import { MiB } from '#lib/bytes.ts'
import type { Definition } from '#model/definition.ts'
import { decide } from '../../test/support/decide.ts'
import { compileView } from './compile.ts'
import type { PatternBound } from './compiled-view.ts'
import { countGroups, patternSize } from './pattern-size.ts'

const columns = [
  { name: 's', type: 'VARCHAR', path: '$.s' },
  { name: 'other', type: 'VARCHAR', path: '$.other' },
]

async function boundOf(...conditions: readonly string[]): Promise<PatternBound | undefined> {
  return (await compileView({ columns, filters: conditions.map((condition) => ({ condition })) })).patternBound
}

async function refusal(...conditions: readonly string[]): Promise<string | undefined> {
  try {
    await compileView({ columns, filters: conditions.map((condition) => ({ condition })) })
    return undefined
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return error.errors?.[0]?.message
  }
}

test.each([
  ['abc', 3],
  ['a{3}', 3],
  ['(ab){2,5}', 10],
  ['((a{10}){10}){10}', 1000],
  ['[a-z]{4}', 4],
  ['\\({2}', 2],
  ['(', 0],
  ['[]a]{2}', 2],
  ['a{,5}', 5],
  ['.{10}', 20],
  ['\\pL{10}', 160],
  ['\\p{Greek}{10}', 160],
  ['[^x]{10}', 50],
  ['[aé漢]{10}', 90],
  ['é{10}', 40],
  ['\\x{6f22}{10}', 40],
  // The bracket is quoted, so it begins no class.
  ['\\Q[\\E(.?){100}]', 306],
])('the size of %s counts its repetitions written out, and what characters cost', (pattern, size) => {
  expect(patternSize(pattern)).toBe(size)
})

test.each([
  ['(a)(?:b)(?P<c>c)(?<d>d)[(]\\(', 3],
  ['\\Q(\\E(a)', 1],
])('the groups of %s are counted', (pattern, groups) => {
  expect(countGroups(pattern)).toBe(groups)
})

test('a pattern that is too slow for large values bounds them, by name', async () => {
  const hostile = `${'[ab]*a[ab]{40}'.repeat(9)}c`
  const condition = `regexp_matches(s, '${hostile.replaceAll('{40}', '{400}')}')`
  const bound = await boundOf("other = 'x'", condition)
  expect(bound?.bytesMax).toBeGreaterThan(100_000)
  expect(bound?.bytesMax).toBeLessThan(MiB)
  expect(bound?.slowest).toContain('the pattern "[ab]*a[ab]{400}')
})

test('only columns that expressions read as text count', async () => {
  const pattern = "regexp_matches(s, '[ab]{1000}[ab]{1000}')"
  expect(await boundOf(pattern)).toMatchObject({ bytesMax: 500_000, reads: [0] })
  const definition = {
    columns: [
      ...columns,
      { name: 'n', type: 'BIGINT', path: '$.n' },
      { name: 'made', type: 'VARCHAR', value: 'lower(other)' },
      { name: 'unread', type: 'VARCHAR', path: '$.unread' },
    ],
    filters: [{ condition: `n > 1 AND made <> '' AND ${pattern}` }],
  }
  const { patternBound } = await compileView(definition)
  expect(patternBound?.reads.toSorted()).toEqual([0, 1])
})

test.each([
  ["s LIKE '%error%'"],
  ["s ILIKE '%error%' AND other LIKE 'a_b%'"],
  ["regexp_full_match(s, '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')"],
  ["regexp_extract(s, '^(GET|POST) ([^ ?]+)', 2) = '/'"],
  ["contains(s, other) AND replace(s, '-', '') <> ''"],
])('%s is fast enough for the largest record', async (condition) => {
  expect(await boundOf(condition)).toBeUndefined()
})

test.each([
  ['the texts that calls return', [`regexp_matches(${'concat(s, s, s, s, s)'}, '.{400}x')`]],
  ['many patterns together', Array.from({ length: 10 }, (_, index) => `regexp_matches(s, '[ab]{100}${index}')`)],
  ['LIKE that is matched as a regular expression', [`s ILIKE '${'%a'.repeat(400)}'`]],
  ['searches for texts of the record', Array.from({ length: 5 }, (_, index) => `strpos(s, concat(other, '${index}')) > 0`)],
])('%s count', async (_, conditions) => {
  expect((await boundOf(...conditions))?.bytesMax).toBeLessThan(MiB)
})

test('patterns that are too slow for small records are refused when the view is compiled', async () => {
  const large = "regexp_matches(s, '[ab]{1000}[ab]{1000}[ab]{1000}[ab]{1000}[ab]{900}')"
  expect(await refusal(large, large, large)).toBeUndefined()
  expect(await refusal(large, large, large, large)).toContain(
    'must be fast enough for records of 65536 bytes; repeat less in the pattern "[ab]{1000}',
  )
  expect(await refusal(`s ILIKE '${'%_'.repeat(1_500)}'`)).toContain('too large')
})

const split = ['50', '51', '52'].map((part) => ({ name: `p${part}`, type: 'VARCHAR', value: `split_part(x, ', ', ${part})` }))
const readX: Definition = { columns: [{ name: 'x', type: 'VARCHAR', path: '$.x' }, ...split] }
/** Takes minutes on a megabyte of these letters. */
const slow = "regexp_matches(x, '[ab]*a[ab]{900}[ab]{900}')"
const letters = 'ab'.repeat(450_000)
const xs = { name: 'x', type: 'VARCHAR', path: '$.x' }

describe('a large record', () => {
  const small = Array.from({ length: 500 }, () => '{"x":"abc"}')

  test('is accepted if expressions do not read what is large in it', async () => {
    const records = [...small, JSON.stringify({ x: 'abc', pad: 'y'.repeat(1_000_000) })]
    expect((await compileView(readX)).patternBound?.bytesMax).toBeLessThan(1_000_000)
    expect((await decide(readX, records)).counts).toMatchObject({ processed: 501, accepted: 501, dlq: 0 })
  })

  test.each<[string, Definition]>([
    ['a filter', { columns: [xs], filters: [{ condition: `NOT ${slow}` }] }],
    ['a computed column', { columns: [xs, { name: 'm', type: 'BOOLEAN', value: slow, cast_failures: 'dlq' }] }],
  ])('is a dead letter if the patterns of %s would take too long, alone and beside others', async (_, definition) => {
    const records = [small[0] ?? '', JSON.stringify({ x: letters }), 'no json', small[1] ?? '']
    for (const beside of [[], [{ columns: [xs] }, { columns: definition.columns, filters: [{ condition: "x <> ''" }] }]]) {
      const started = performance.now()
      const { counts, dlq } = await decide(definition, records, beside)
      expect(performance.now() - started).toBeLessThan(10_000)
      expect(counts).toMatchObject({ accepted: 2, dlq: 2, castNulls: 0, errors: { too_complex: 1, invalid_json: 1 } })
      expect(dlq[0]).toMatchObject({
        ...{ error_code: 'too_complex', column: null, record_index: 1 },
        message: expect.stringMatching(
          /take too long on 900000 bytes of text, above all the pattern "\[ab\].*: repeat less in it/,
        ),
      })
    }
  })

  test('is decided as before if several columns read the same text of a record that is small enough', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `c${index}`)
    const types = ['VARCHAR', 'JSON']
    const columns = names.map((name, index) => ({ name, type: types[index % 2] ?? '', path: index < 2 ? '$' : '$.x' }))
    const definition = {
      columns: [...columns, { name: 'm', type: 'BOOLEAN', value: `regexp_matches(c0, '[ab]{1000}[ab]{1000}c') OR c1 = c2` }],
    }
    const bytesMax = (await compileView(definition)).patternBound?.bytesMax ?? 0
    const record = (bytes: number) => JSON.stringify({ x: 'z'.repeat(bytes - 8) })
    const { counts } = await decide(definition, [record(bytesMax), record(bytesMax + 1)])
    expect(counts).toMatchObject({ accepted: 1, errors: { too_complex: 1 } })
  })

  test('that a view expands is judged by what all of its rows read', async () => {
    const definition: Definition = {
      expand: '$.items[*]',
      columns: [
        { name: 'x', type: 'VARCHAR', path: '$item.x' },
        { name: 'pad', type: 'VARCHAR', path: '$item.pad' },
      ],
      filters: [{ condition: `NOT ${slow}` }],
    }
    const items = (...all: readonly object[]) => JSON.stringify({ items: all })
    const pads = Array.from({ length: 9 }, () => ({ x: 'b', pad: 'y'.repeat(100_000) }))
    const { counts, dlq, rows } = await decide(definition, [
      items({ x: 'a' }, { x: 'b' }),
      items(...pads),
      items({ x: 'a' }, { x: letters }, { x: 'c' }),
      items(...Array.from({ length: 9 }, () => ({ x: 'ab'.repeat(50_000) }))),
      items(),
    ])
    expect(counts).toMatchObject({ processed: 5, accepted: 2, dropped: 1, dlq: 2, rows: 11, errors: { too_complex: 2 } })
    expect(dlq.map(({ record_index, item }) => [record_index, item])).toEqual([
      [2, '$.items[1]'],
      [3, '$.items[0]'],
    ])
    expect(rows).toHaveLength(11)
    const computed = { ...definition, filters: [], columns: [...definition.columns, { name: 'm', type: 'BOOLEAN', value: slow }] }
    const streamed = await decide(computed, [items({ x: 'a' }, { x: letters }, { x: letters }), items({ x: 'a' })])
    expect(streamed.counts).toMatchObject({ accepted: 1, dlq: 1, rows: 1, errors: { too_complex: 1 } })
  })

  test.each<[string, string, string]>([
    ['VARCHAR[]', '$.l[*].x', '{"l":[{"x":"…"},{}]}'],
    ['VARCHAR[]', '$.l[0].l[*]', '{"l":[{"l":["a","…"]}]}'],
    ['VARCHAR[]', '$.l', '{"l":["a","…"]}'],
    ['JSON[]', '$.l[*]', '{"l":[{"x":"…"}]}'],
    ['JSON', '$.l', '{"l":[{"x":"…"}]}'],
    ['BLOB', '$.l', '{"l":"…"}'],
    ['VARCHAR[]', '$item.l[*].x', '{"items":[{"l":[{"x":"…"}]}]}'],
    ['JSON', '$item', '{"items":[{"l":[{"x":"…"}]}]}'],
    ['VARCHAR[]', '$parent.l[*]', '{"orders":[{"l":["…"],"items":[1]}]}'],
    ['VARCHAR', '$parent.l', '{"orders":[{"l":"…","items":[1]}]}'],
    ['VARCHAR', '$.l', '{"l":"…","items":[1]}'],
  ])('is a dead letter if a value of type %s at %s is too long', async (type, path, record) => {
    const expand = path.startsWith('$parent') ? '$.orders[*].items[*]' : record.includes('items') ? '$.items[*]' : undefined
    const columns = [
      { name: 'l', type, path },
      {
        name: 'm',
        type: 'BOOLEAN',
        value: "CAST(l AS VARCHAR) LIKE '%z' OR regexp_matches(CAST(l AS VARCHAR), '[ab]*a[ab]{900}[ab]{900}')",
      },
    ]
    for (const lists of ['packed', 'aligned'] as const) {
      const definition = { columns, lists, ...(expand !== undefined && { expand }) }
      const { counts } = await decide(definition, [record.replace('…', 'ab'), record.replace('…', letters)])
      expect(counts).toMatchObject({ accepted: 1, dlq: 1, errors: { too_complex: 1 } })
    }
  })
})
