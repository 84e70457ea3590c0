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

  test.each([
    ['x'.repeat(200), ', which have at most 180 bytes'],
    ['ü'.repeat(40), ', which have at most 180 bytes'],
    ['__HIVE_DEFAULT_PARTITION__', ': __HIVE_DEFAULT_PARTITION__ stands for NULL'],
    ['a\0b', ': names cannot have the character U+0000'],
  ])('has no folder for %j', async (country, reason) => {
    const { files, dlq } = await layOut(definition, [
      { id: 1, country },
      { id: 2, country: 'DE' },
    ])
    expect(files).toMatchObject([{ partition: { country: 'DE' }, rows: [['2']] }])
    const shown = JSON.stringify([country, null]).slice(0, 200)
    const message = `the values ${shown} of country, day cannot name folders${reason}`
    expect(dlq).toMatchObject([{ error_code: 'no_partition', message }])
  })

  test('has no folder for a value that is too long as a directory store writes it', async () => {
    const { dlq } = await layOut({ columns, partition_by: ['country'] }, [{ id: 1, country: '/'.repeat(57) }])
    const reason = 'cannot name folders: one has more than 255 bytes where % is written as %25'
    expect(dlq).toMatchObject([{ message: expect.stringContaining(reason) }])
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

describe('records with rows in many partitions', () => {
  const definition: Definition = {
    expand: '$.a[*]',
    columns: [
      { name: 'id', type: 'BIGINT', path: '$.id' },
      { name: 'c', type: 'VARCHAR', path: '$item' },
    ],
    partition_by: ['c'],
  }
  const values = (count: number, times: number, prefix: string) =>
    Array.from({ length: count * times }, (_, at) => `${prefix}${at % count}`)
  const ordinary = Array.from({ length: 400 }, (_, id) => ({ id, a: [`c${id % 40}`] }))

  test('a record that needs more partitions than a segment has takes no place', async () => {
    const { counts, dlq, files } = await layOut(definition, [...ordinary, { id: 400, a: values(65, 100, 'x') }])
    expect(counts).toMatchObject({ processed: 401, accepted: 400, dlq: 1, rows: 400, errors: { no_partition: 1 } })
    expect(files).toHaveLength(40)
    const message = 'the record has rows in 65 partitions of c, and only 64 of a segment have files'
    expect(dlq).toMatchObject([{ record_index: 400, item: null, message }])
  })

  test('most records have a place, however many rows others have', async () => {
    const large = [values(60, 20, 'x'), values(60, 20, 'y')].map((a, at) => ({ id: 400 + at, a }))
    const { counts, dlq } = await layOut(definition, [...large, ...ordinary])
    expect(counts).toMatchObject({ accepted: 400, dlq: 2 })
    const start = 'the segment has 160 partitions of c, and only 40 of them have files, for the most records'
    expect(dlq.map(({ message }) => message)).toEqual([
      `${start}: ["x0"] is not one of them`,
      `${start}: ["y0"] is not one of them`,
    ])
  })

  test('a row needs no place if it has the key of one before it in its record', async () => {
    const deduped: Definition = { ...definition, dedupe_by: ['id'] }
    const { counts, files } = await layOut(deduped, [
      ...ordinary,
      { id: 400, a: ['x0', ...values(65, 100, 'x'), 'x'.repeat(300)] },
    ])
    expect(counts).toMatchObject({ accepted: 401, dlq: 0, rows: 401, duplicates: 6_501 })
    expect(files).toHaveLength(41)
  })

  test('a row needs a place although another record has its key: that one may be refused', async () => {
    const deduped: Definition = { ...definition, dedupe_by: ['id'] }
    const records = [
      { id: 1, a: ['x'] },
      { id: 2, a: ['x'] },
      { id: 1, a: ['y'] },
      { id: 1, a: ['x'] },
    ]
    const { counts, files } = await layOut(deduped, records, 1)
    expect(files.map(({ rows }) => rows)).toEqual([[['1'], ['2']]])
    expect(counts).toMatchObject({ accepted: 2, dropped: 1, dlq: 1, duplicates: 1 })
  })

  test('a value that cannot name a folder refuses its record, with the reason of the value', async () => {
    const records = [
      { id: 1, a: ['x', 'a\0b', 'y'] },
      { id: 2, a: ['x'] },
    ]
    const { counts, dlq, files } = await layOut(definition, records)
    expect(files).toMatchObject([{ partition: { c: 'x' }, rows: [['2']] }])
    expect(counts).toMatchObject({ accepted: 1, dlq: 1 })
    const message = 'the values ["a\\u0000b"] of c cannot name folders: names cannot have the character U+0000'
    expect(dlq).toMatchObject([{ record_index: 0, message }])
  })

  test('a record that is refused has no key in the window, and one whose key is known needs no place', async () => {
    const windowed: Definition = { ...definition, dedupe_by: ['id'], dedupe_within: '1h' }
    const texts = [
      { id: 1, a: ['x', 'y'] },
      { id: 2, a: ['x', 'x'] },
      { id: 3, a: ['y'] },
    ].map((record) => JSON.stringify(record))
    const first = await decideFiles(windowed, texts, { partitionsMax: 1, known: new Set() })
    expect(first.counts).toMatchObject({ accepted: 2, dlq: 1, rows: 2, duplicates: 2 })
    expect(first.keys).toHaveLength(2)
    expect(first.keys).toEqual(first.inFiles)
    const again = await decideFiles(windowed, [...texts, '{"id":4,"a":["z"]}'], { partitionsMax: 1, known: new Set(first.keys) })
    expect(again.counts).toMatchObject({ accepted: 1, dropped: 2, dlq: 1, rows: 1 })
    expect(again.keys).toEqual(again.inFiles)
    // As many rows as before would take all places, if they needed one.
    const one: Definition = { columns, partition_by: ['country'], dedupe_by: ['id'], dedupe_within: '1h' }
    const rows = (ids: readonly number[]) => ids.map((id) => JSON.stringify({ id, country: `c${id}` }))
    const before = await decideFiles(one, rows([1, 2, 3]), { partitionsMax: 3, known: new Set() })
    const next = await decideFiles(one, rows([1, 1, 2, 2, 3, 3, 4]), { partitionsMax: 3, known: new Set(before.keys) })
    expect(next.counts).toMatchObject({ accepted: 1, dropped: 6, dlq: 0, rows: 1, duplicates: 6 })
    expect(next.files).toMatchObject([{ partition: { country: 'c4' } }])
  })

  test('little memory is enough', { timeout: 60_000 }, async () => {
    const many = Array.from({ length: 10_000 }, (_, id) => ({ id, a: values(10, 1, `${id % 3_000} `) }))
    const { counts, files } = await decideFiles(
      { ...definition, dedupe_by: ['id', 'c'] },
      many.map((record) => JSON.stringify(record)),
      { memoryBytes: 14 * MiB },
    )
    expect(files).toHaveLength(60)
    expect(counts).toMatchObject({ processed: 10_000, accepted: 24, dlq: 9_976, rows: 240, duplicates: 0 })
  })

  test('a record is placed if and only if each row that it needs has a partition', async () => {
    const item = fc.record({
      c: fc.constantFrom('a', 'b', 'c', 'd', null, 'x'.repeat(200)),
      key: fc.constantFrom('k', 'l', null),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(item, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 20 }),
        fc.constantFrom(1, 2, 3),
        fc.boolean(),
        async (arrays, partitionsMax, isDeduped) => {
          const keyed: Definition = {
            ...definition,
            columns: [
              { name: 'id', type: 'INTEGER', path: '$.id' },
              { name: 'line', type: 'INTEGER', path: '$$.item_index' },
              { name: 'c', type: 'VARCHAR', path: '$item.c' },
              { name: 'key', type: 'VARCHAR', path: '$item.key', hidden: true },
            ],
            ...(isDeduped && { dedupe_by: ['key'] }),
          }
          const records = arrays.map((a, id) => ({ id, a }))
          const { files, dlq, counts } = await layOut(keyed, records, partitionsMax)
          const isRepeated = (seen: Set<string>, key: string | null) =>
            isDeduped && key !== null && seen.size === seen.add(key).size
          const needed = arrays.map((items) => {
            const seen = new Set<string>()
            return items.filter(({ key }) => !isRepeated(seen, key)).map(({ c }) => c)
          })
          const refused = new Set(dlq.map(({ record_index }) => Number(record_index)))
          const places = new Set(needed.flatMap((values, id) => (refused.has(id) ? [] : values)))
          expect(places.size).toBeLessThanOrEqual(partitionsMax)
          for (const id of refused) expect(needed[id]?.some((value) => !places.has(value))).toBe(true)
          const seen = new Set<string>()
          const written = records.flatMap(({ id, a }) =>
            refused.has(id) ? [] : a.flatMap(({ key }, line) => (isRepeated(seen, key) ? [] : [[id, line]])),
          )
          const inFiles = files.flatMap(({ partition, rows }) =>
            rows.map(([id, line]) => {
              expect(arrays[Number(id)]?.[Number(line)]?.c).toBe(partition['c'])
              return [id, line]
            }),
          )
          const ofRow = ([id = 0, line = 0]: readonly unknown[]) => 10 * Number(id) + Number(line)
          expect(inFiles.map(ofRow).toSorted((a, b) => a - b)).toEqual(written.map(ofRow))
          expect(counts).toMatchObject({ dlq: refused.size, rows: written.length })
          expect(await layOut(keyed, records, partitionsMax)).toMatchObject({ files, dlq })
        },
      ),
      { numRuns: runs(15, 300) },
    )
  }, 60_000)
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
