import { expect, test } from 'vitest'
import type { Definition } from '#model/definition.ts'
import { decideFiles } from '../../test/support/decide.ts'

const many = Array.from({ length: 70 }, (_, index) => ({ name: `c${index}`, type: 'VARCHAR', path: '$.none' }))

/** Columns on both sides of the bound of a mask: `first` and `n`. */
const definition: Definition = {
  columns: [
    { name: 'id', type: 'VARCHAR', path: '$.id' },
    { name: 'first', type: 'BIGINT', path: '$.n' },
    ...many,
    { name: 'n', type: 'BIGINT', path: '$.n' },
  ],
}

const decide = async (more: Partial<Definition>, records: readonly unknown[], partitionsMax?: number) => {
  const { counts, quality } = await decideFiles(
    { ...definition, ...more },
    records.map((record) => JSON.stringify(record)),
    partitionsMax === undefined ? {} : { partitionsMax },
  )
  const ofColumns = quality.columns.flatMap(({ name, cast_nulls }) => (cast_nulls > 0 ? [[name, cast_nulls]] : []))
  return { counts, ofColumns }
}

test('failed casts of duplicates are not counted', async () => {
  const records = [
    { id: 'a', n: 'x' },
    { id: 'a', n: 'x' },
    { id: 'b', n: 1 },
    { id: 'b', n: 'y' },
    { id: 'c', n: 'z' },
  ]
  const { counts, ofColumns } = await decide({ dedupe_by: ['id'] }, records)
  expect(counts).toMatchObject({ accepted: 3, dropped: 2, duplicates: 2, castNulls: 4 })
  expect(ofColumns).toEqual([
    ['first', 2],
    ['n', 2],
  ])
  expect((await decide({ sort_by: ['id'] }, records)).counts).toMatchObject({ accepted: 5, castNulls: 8 })
})

test('those of rows without a partition are not counted, and those of an unknown filter are', async () => {
  const records = [{ id: 'a', n: 1 }, { id: 'a', n: 'x' }, { id: 'b', n: 'y' }, { n: 'unknown' }]
  const filters = [{ condition: "id <> 'z'" }]
  const { counts, ofColumns } = await decide({ partition_by: ['id'], filters }, records, 1)
  expect(counts).toMatchObject({ accepted: 2, dropped: 1, dlq: 1, errors: { no_partition: 1 }, castNulls: 4 })
  expect(ofColumns).toEqual([
    ['first', 2],
    ['n', 2],
  ])
})

test('elements count by themselves', async () => {
  const expanded: Definition = {
    expand: '$.items[*]',
    columns: [
      { name: 'id', type: 'VARCHAR', path: '$item.id' },
      { name: 'n', type: 'BIGINT', path: '$item.n' },
    ],
    dedupe_by: ['id'],
  }
  const items = ['a', 'b', 'a'].map((id) => ({ id, n: 'x' }))
  const { counts } = await decideFiles(expanded, [JSON.stringify({ items }), JSON.stringify({ items })])
  expect(counts).toMatchObject({ accepted: 1, dropped: 1, rows: 2, duplicates: 4, castNulls: 2 })
})
