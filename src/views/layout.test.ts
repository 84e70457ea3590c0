import { expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import type { Definition } from '#model/definition.ts'
import { compileView } from './compile.ts'

const columns: Definition['columns'] = [
  { name: 'id', type: 'BIGINT', path: '$.id' },
  { name: 'Country', type: 'VARCHAR', path: '$.country' },
  { name: 'day', type: 'DATE', path: '$.day' },
  { name: 'at', type: 'TIMESTAMP', path: '$.at' },
  { name: 'price', type: 'DECIMAL(9,2)', path: '$.price' },
  { name: 'tags', type: 'VARCHAR[]', path: '$.tags' },
  { name: 'extra', type: 'JSON', path: '$.extra' },
  { name: 'the day', type: 'DATE', path: '$.day' },
  { name: 'secret', type: 'VARCHAR', path: '$.secret', hidden: true },
]

test('the columns of a layout are found as readers find them', async () => {
  const { layout } = await compileView({
    columns,
    dedupe_by: ['secret'],
    partition_by: ['country', 'day'],
    sort_by: ['at', 'ID'],
    bloom_filters: false,
  })
  expect(layout).toEqual({ dedupeBy: [8], partitionBy: [1, 2], sortBy: [3, 0], bloomFilters: false })
  expect((await compileView({ columns })).layout).toEqual({ dedupeBy: [], partitionBy: [], sortBy: [], bloomFilters: true })
})

test('a window is in milliseconds', async () => {
  const { layout } = await compileView({ columns, dedupe_by: ['id', 'at'], dedupe_within: '1h30m' })
  expect(layout).toMatchObject({ dedupeBy: [0, 3], dedupeWithinMs: 5_400_000 })
})

test.each<[Partial<Definition>, string, string]>([
  [{ dedupe_within: '1h' }, 'dedupe_within', 'must be beside dedupe_by'],
  [
    { dedupe_within: '1h', dedupe_by: ['id', 'secret'] },
    'dedupe_by.1',
    'must not name a hidden column, such as "secret", beside dedupe_within: its index is rebuilt from the files',
  ],
  [
    { dedupe_within: '1h', dedupe_by: ['Country'], partition_by: ['Country'] },
    'dedupe_by.0',
    'must not name a column of partition_by, such as "Country", beside dedupe_within',
  ],
  [
    { dedupe_within: '1h', dedupe_by: ['x'], columns: [{ name: 'x', type: 'DOUBLE', path: '$.x' }] },
    'dedupe_by.0',
    'must not name a column of type DOUBLE, such as "x", beside dedupe_within: use a DECIMAL, an integer or text',
  ],
  [{ dedupe_within: '59s', dedupe_by: ['id'] }, 'dedupe_within', 'must be from 60 s to 168 h'],
  [{ dedupe_within: '169h', dedupe_by: ['id'] }, 'dedupe_within', 'must be from 60 s to 168 h'],
  [
    { dedupe_within: '1d', dedupe_by: ['id'] },
    'dedupe_within',
    'must be a duration in hours, minutes and seconds, such as 24h or 1h30m; a day is 24h',
  ],
  [{ partition_by: ['nope'] }, 'partition_by.0', '"nope" is not a column of this view'],
  [{ dedupe_by: ['idd'] }, 'dedupe_by.0', '"idd" is not a column of this view: did you mean "id"?'],
  [{ sort_by: ['contry'] }, 'sort_by.0', '"contry" is not a column of this view: did you mean "Country"?'],
  [{ partition_by: ['day', 'DAY'] }, 'partition_by.1', 'must not name a column twice'],
  [{ partition_by: ['at'] }, 'partition_by.0', 'add a DATE column with the value CAST("at" AS DATE)'],
  [{ partition_by: ['price'] }, 'partition_by.0', 'VARCHAR, DATE, BOOLEAN or an integer'],
  [{ partition_by: ['tags'] }, 'partition_by.0', 'is of type VARCHAR[]'],
  [{ partition_by: ['the day'] }, 'partition_by.0', 'cannot be the name of a folder'],
  [{ partition_by: ['secret'] }, 'partition_by.0', 'must not name a hidden column'],
  [{ sort_by: ['extra'] }, 'sort_by.0', 'must name a column whose values can be compared'],
  [{ dedupe_by: ['nope'] }, 'dedupe_by.0', '"nope" is not a column of this view'],
  [{ dedupe_by: ['id', 'ID'] }, 'dedupe_by.1', 'must not name a column twice'],
  [{ dedupe_by: ['extra'] }, 'dedupe_by.0', 'must name a column whose values can be compared'],
  [{ sort_by: ['tags'] }, 'sort_by.0', 'is of type VARCHAR[]'],
  [{ sort_by: ['secret'] }, 'sort_by.0', 'must not name a hidden column'],
  [{ sort_by: ['day'], partition_by: ['day'] }, 'sort_by.0', 'all rows of a file have the same day'],
  [{ columns: columns.slice(1, 2), partition_by: ['Country'] }, 'partition_by', 'must leave a column that is in the files'],
  [{ partition_by: [] }, 'partition_by', ''],
  [{ partition_by: ['day', 'id', 'Country', 'at'] }, 'partition_by', ''],
])('%j is refused', async (change, path, message) => {
  const problem = await compileView({ columns, ...change }).catch((error: unknown) => error)
  expect(problem).toBeInstanceOf(AppError)
  expect((problem as AppError).errors).toContainEqual(
    expect.objectContaining({ path, message: expect.stringContaining(message) }),
  )
})
