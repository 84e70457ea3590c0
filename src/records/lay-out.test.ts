import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import type { Definition } from '#model/definition.ts'
import { decideFiles } from '../../test/support/decide.ts'
import { runs } from '../../test/support/thorough.ts'

const columns: Definition['columns'] = [
  { name: 'id', type: 'BIGINT', path: '$.id' },
  { name: 'country', type: 'VARCHAR', path: '$.country' },
  { name: 'day', type: 'DATE', path: '$.day' },
]

const layOut = (definition: Definition, records: readonly unknown[], partitionsMax?: number) =>
  decideFiles(
    definition,
    records.map((record) => JSON.stringify(record)),
    partitionsMax === undefined ? {} : { partitionsMax },
  )

describe('a view with partition_by', () => {
  const definition: Definition = { columns, partition_by: ['country', 'day'] }

  test('has a file for each combination of values, without their columns', async () => {
    const { files, counts, quality } = await layOut(definition, [
      { id: 1, country: 'DE', day: '2026-11-20' },
      { id: 2, country: 'FR', day: '2026-11-20' },
      { id: 3, country: 'DE', day: '2026-11-20' },
      { id: 4, day: '2026-11-21' },
      { id: 5, country: '', day: '2026-11-20' },
    ])
    expect(files).toEqual([
      { partition: { country: 'DE', day: '2026-11-20' }, rows: [['1'], ['3']] },
      { partition: { country: 'FR', day: '2026-11-20' }, rows: [['2']] },
      { partition: { country: null, day: '2026-11-20' }, rows: [['5']] },
      { partition: { country: null, day: '2026-11-21' }, rows: [['4']] },
    ])
    expect(counts).toMatchObject({ processed: 5, accepted: 5, dlq: 0 })
    expect(quality.columns).toMatchObject([
      { values: 5 },
      { name: 'country', values: 4, nulls: 1, min: '', max: 'FR' },
      { name: 'day' },
    ])
  })

  test('sends rows of the least frequent partitions to the dead letter queue if there are too many', async () => {
    const records = [
      ['a', 3],
      ['b', 2],
      ['c', 1],
      [null, 1],
    ].flatMap(([country, times]) => Array.from({ length: Number(times) }, (_, id) => ({ id, country, day: '2026-11-20' })))
    const { files, counts, dlq, quality, names } = await layOut(definition, records, 2)
    expect(files.map(({ partition, rows }) => [partition['country'], rows.length])).toEqual([
      ['a', 3],
      ['b', 2],
    ])
    expect(counts).toMatchObject({ processed: 7, accepted: 5, dlq: 2, errors: { no_partition: 2 } })
    const message = (country: string) =>
      `the segment has 4 partitions of country, day, and only the 2 with the most rows have files: ${country} is not one of them`
    expect(dlq).toMatchObject([
      { error_code: 'no_partition', record_index: 5, message: message('["c","2026-11-20"]') },
      { error_code: 'no_partition', record_index: 6, message: message('[null,"2026-11-20"]') },
    ])
    expect(quality.columns).toMatchObject([{ values: 5 }, { values: 5, nulls: 0, max: 'b' }, { values: 5 }])
    expect(names).toEqual(['rows.parquet.0.parquet', 'rows.parquet.1.parquet'])
  })

  test.each(['x'.repeat(200), 'ü'.repeat(40), '__HIVE_DEFAULT_PARTITION__', 'a\0b'])('has no folder for %j', async (country) => {
    const { files, dlq } = await layOut(definition, [
      { id: 1, country },
      { id: 2, country: 'DE' },
    ])
    expect(files).toMatchObject([{ partition: { country: 'DE' }, rows: [['2']] }])
    expect(dlq).toMatchObject([{ error_code: 'no_partition', message: expect.stringContaining('cannot name folders') }])
  })

  test('has no file if no row is accepted', async () => {
    const { files, counts } = await layOut({ ...definition, filters: [{ condition: 'id > 5' }] }, [{ id: 1 }])
    expect(files).toEqual([])
    expect(counts.dropped).toBe(1)
  })
})

test('sort_by orders the rows of each file, nulls first, and otherwise as the records came', async () => {
  const { files } = await layOut({ columns, sort_by: ['country', 'day'] }, [
    { id: 1, country: 'b' },
    { id: 2, country: 'a', day: '2026-11-21' },
    { id: 3, country: 'a', day: '2026-11-20' },
    { id: 4, country: 'a', day: '2026-11-20' },
    { id: 5 },
  ])
  expect(files.map(({ rows }) => rows.map(([id]) => id))).toEqual([['5', '3', '4', '2', '1']])
})

test('the rows of a record may be in several files, and have none if one of them has no place', async () => {
  const ofItems: Definition = {
    expand: '$.items[*]',
    columns: [
      { name: 'id', type: 'BIGINT', path: '$.id' },
      { name: 'country', type: 'VARCHAR', path: '$item.c' },
      { name: 'line', type: 'INTEGER', path: '$$.item_index' },
    ],
    partition_by: ['country'],
    sort_by: ['id'],
  }
  const items = (...countries: readonly string[]) => countries.map((c) => ({ c }))
  const records = [
    { id: 2, items: items('DE', 'FR', 'DE') },
    { id: 1, items: items('DE', 'FR') },
    { id: 3, items: items('DE', 'IT') },
  ]
  const { files, dlq, counts } = await layOut(ofItems, records, 2)
  expect(files).toMatchObject([
    {
      partition: { country: 'DE' },
      rows: [
        ['1', 0],
        ['2', 0],
        ['2', 2],
      ],
    },
    {
      partition: { country: 'FR' },
      rows: [
        ['1', 1],
        ['2', 1],
      ],
    },
  ])
  expect(dlq).toMatchObject([{ error_code: 'no_partition', record_index: 2, item: null }])
  expect(counts).toMatchObject({ processed: 3, accepted: 2, dropped: 0, dlq: 1, rows: 5 })
})

const country = fc.oneof(
  fc.constantFrom(null, '', 'DE', 'de', "O'Brien", 'a=b/c', '%20', 'ü', '🙂', '..', ' '),
  fc.string({ unit: 'grapheme' }),
)
const record = fc.record({
  id: fc.integer({ min: 0, max: 99 }),
  country,
  day: fc.constantFrom('2026-11-20', '2026-11-21', null, 'never'),
})

test('each record is in one file of its values, or in the dead letter queue', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { minLength: 1, maxLength: 40 }),
      fc.constantFrom(1, 3, 64),
      fc.boolean(),
      async (records, partitionsMax, isSorted) => {
        const layout = { partition_by: ['country', 'day'], ...(isSorted && { sort_by: ['id'] }) }
        const indexed = records.map((each, index) => ({ ...each, index }))
        const definition = { columns: [...columns, { name: 'index', type: 'BIGINT', path: '$.index' }], ...layout }
        const { files, dlq, counts } = await layOut(definition, indexed, partitionsMax)
        const seen = files.flatMap(({ partition, rows }) => {
          if (isSorted) expect(rows.map(([id]) => Number(id))).toEqual(rows.map(([id]) => Number(id)).toSorted((a, b) => a - b))
          for (const [, index] of rows) {
            const { country, day } = records[Number(index)] ?? {}
            expect(partition).toEqual({ country: country || null, day: day === 'never' ? null : day })
          }
          return rows.map(([, index]) => Number(index))
        })
        const refused = dlq.map(({ record_index }) => Number(record_index))
        expect([...seen, ...refused].toSorted((a, b) => a - b)).toEqual([...records.keys()])
        expect(counts.accepted).toBe(seen.length)
        expect(files.length).toBeLessThanOrEqual(partitionsMax)
      },
    ),
    { numRuns: runs(15, 300) },
  )
}, 60_000)

describe('a view with dedupe_by', () => {
  const event = { name: 'event', type: 'VARCHAR', path: '$.event', hidden: true }
  const definition: Definition = { columns: [...columns, event], dedupe_by: ['event', 'country'] }

  test('writes the first row of each key, and counts the others among those that are dropped', async () => {
    const { files, counts, quality } = await layOut({ ...definition, filters: [{ condition: 'id < 90' }] }, [
      { id: 99, event: 'a', country: 'DE' },
      { id: 1, event: 'a', country: 'DE' },
      { id: 2, event: 'a', country: 'FR' },
      { id: 3, event: 'a', country: 'DE' },
      { id: 4, event: 'a' },
      { id: 5, event: 'a' },
      { id: 6, event: 'a', country: 'DE' },
    ])
    // A row with NULL in its key is like no other.
    expect(files.flatMap(({ rows }) => rows.map(([id]) => id))).toEqual(['1', '2', '4', '5'])
    expect(counts).toMatchObject({ processed: 7, accepted: 4, dropped: 3, dlq: 0, rows: 4, duplicates: 2 })
    expect(quality.columns).toMatchObject([{ values: 4, min: '1', max: '5' }, { values: 2, nulls: 2 }, { values: 0 }])
  })

  test('counts rows of arrays: a record without another row is dropped', async () => {
    const items: Definition = {
      expand: '$.items[*]',
      columns: [
        { name: 'id', type: 'BIGINT', path: '$.id' },
        { name: 'sku', type: 'VARCHAR', path: '$item' },
      ],
      dedupe_by: ['sku'],
    }
    const { files, counts } = await layOut(items, [
      { id: 1, items: ['a', 'b', 'a'] },
      { id: 2, items: ['b', 'a'] },
      { id: 3, items: ['c', 'a'] },
    ])
    expect(files.map(({ rows }) => rows)).toEqual([
      [
        ['1', 'a'],
        ['1', 'b'],
        ['3', 'c'],
      ],
    ])
    expect(counts).toMatchObject({ processed: 3, accepted: 2, dropped: 1, dlq: 0, rows: 3, duplicates: 4 })
  })
})

test('of the records with one key, the first that is accepted is in a file', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { minLength: 1, maxLength: 40 }),
      fc.constantFrom<string[]>(['country'], ['id', 'day']),
      async (records, keys) => {
        const indexed = records.map((each, index) => ({ ...each, index }))
        const definition = { columns: [...columns, { name: 'index', type: 'BIGINT', path: '$.index' }], dedupe_by: keys }
        const { files, counts } = await layOut(definition, indexed)
        const seen = new Set<string>()
        const firsts = indexed.filter((each) => {
          const key = keys.map((name) => (name === 'day' && each.day === 'never' ? null : each[name as 'id']))
          if (key.includes(null as never)) return true
          return seen.size < seen.add(JSON.stringify(key)).size
        })
        expect(files.flatMap(({ rows }) => rows.map((row) => Number(row.at(-1))))).toEqual(firsts.map(({ index }) => index))
        const duplicates = records.length - firsts.length
        expect(counts).toMatchObject({ accepted: firsts.length, dropped: duplicates, duplicates })
      },
    ),
    { numRuns: runs(15, 300) },
  )
}, 60_000)

test.each<[string, Partial<Definition>]>([
  ['sort_by', { sort_by: ['id'] }],
  ['dedupe_by', { dedupe_by: ['text'] }],
  ['all of them', { sort_by: ['id'], dedupe_by: ['text', 'id'], partition_by: ['part'] }],
])('%s in little memory takes each row', { timeout: 60_000 }, async (_, layout) => {
  const records = Array.from({ length: 30_000 }, (_, at) => {
    const text = createHash('sha512').update(String(at)).digest('hex').repeat(6)
    return JSON.stringify({ id: (at * 7_919) % 30_000, text, part: String(at % 3) })
  })
  const definition = {
    columns: ['text', 'part']
      .map((name) => ({ name, type: 'VARCHAR', path: `$.${name}` }))
      .concat({ name: 'id', type: 'INTEGER', path: '$.id' }),
    ...layout,
  }
  const { counts, files } = await decideFiles(definition, [...records, records[7] ?? ''], { memoryBytes: 14 * MiB })
  const isDeduped = layout.dedupe_by !== undefined
  expect(counts).toMatchObject({ processed: 30_001, accepted: isDeduped ? 30_000 : 30_001, duplicates: isDeduped ? 1 : 0 })
  const ids = files.flatMap(({ rows }) => rows.map((row) => Number(row.at(-1))))
  expect(new Set(ids).size).toBe(30_000)
  const descents = ids.filter((id, at) => id < (ids[at - 1] ?? 0)).length
  if (layout.sort_by !== undefined) expect(descents).toBeLessThan(100)
})

test('a row that is refused hides no other one with its key', async () => {
  const records = [
    ['x', 'rare'],
    ['x', 'DE'],
    ['y', 'DE'],
    ['y', 'DE'],
  ].map(([event, country], id) => ({ id, event, country }))
  const event = { name: 'event', type: 'VARCHAR', path: '$.event', hidden: true }
  const { files, counts } = await layOut(
    { columns: [...columns, event], partition_by: ['country'], dedupe_by: ['event'] },
    records,
    1,
  )
  expect(files.map(({ rows }) => rows.map(([id]) => id))).toEqual([['1', '2']])
  expect(counts).toMatchObject({ accepted: 2, dropped: 1, dlq: 1, duplicates: 1 })
})

test('columns may have the names that DuckDB uses', async () => {
  const named = ['file_row_number', 'filename', 'rows', 'fits', 'record_index', 'item_index', 'r'].map((name) => ({
    name,
    type: 'VARCHAR',
    path: '$.v',
  }))
  const layout = { dedupe_by: ['file_row_number', 'r'], partition_by: ['fits'], sort_by: ['rows', 'record_index'] }
  const { files, counts } = await layOut({ columns: named, ...layout }, [{ v: 'b' }, { v: 'a' }, { v: 'b' }])
  expect(files.map(({ partition, rows }) => [partition, rows.length])).toEqual([
    [{ fits: 'b' }, 1],
    [{ fits: 'a' }, 1],
  ])
  expect(counts).toMatchObject({ accepted: 2, duplicates: 1 })
})
