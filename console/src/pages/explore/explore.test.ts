import { describe, expect, test } from 'vitest'
import { identifier, type QueryTable } from '../../api/query.ts'
import { drawingOf, spansOf } from './chart-data.ts'
import { toCsv, toJsonLines } from './download.ts'
import { readExploreSearch, sinceOf } from './explore-search.ts'
import { readyQueries } from './ready-queries.ts'

const columnsOf = (...columns: readonly (readonly [string, string])[]) => columns.map(([name, type]) => ({ name, type }))

describe('a download', () => {
  const result = {
    columns: columnsOf(['a,b', 'VARCHAR'], ['c', 'BIGINT']),
    rows: [
      ['say "x"\n', '9007199254740993'],
      [null, ''],
      [{ d: 1 }, 2],
    ],
  }

  test('as CSV tells NULL from an empty text, and quotes what has to be', () => {
    expect(toCsv(result)).toBe('"a,b",c\r\n"say ""x""\n",9007199254740993\r\n,""\r\n"{""d"":1}",2\r\n')
  })

  test('as JSON lines keeps every digit', () => {
    expect(toJsonLines(result).split('\n')[0]).toBe('{"a,b":"say \\"x\\"\\n","c":"9007199254740993"}')
  })
})

describe('a chart', () => {
  test('over time is in the order of time, with one series for each column of figures', () => {
    const columns = columnsOf(['minute', 'TIMESTAMP'], ['rows', 'BIGINT'], ['name', 'VARCHAR'], ['mean', 'DOUBLE'])
    const rows = [
      ['2026-11-20T08:01:00.000000Z', '2', 'x', null],
      ['2026-11-20T08:00:00.000000Z', '1', 'y', 0.5],
      [null, '9', 'z', 1],
    ]
    const start = Date.parse('2026-11-20T08:00:00Z')
    expect(drawingOf({ columns, rows })).toMatchObject({
      kind: 'time',
      times: [start, start + 60_000],
      series: [
        { label: 'rows', values: [1, 2] },
        { label: 'mean', values: [0.5, null] },
      ],
    })
  })

  test('without times has bars', () => {
    const rows = [
      ['a', '3'],
      [null, '1'],
    ]
    expect(drawingOf({ columns: columnsOf(['type', 'VARCHAR'], ['rows', 'BIGINT']), rows })).toEqual({
      kind: 'bars',
      label: 'rows',
      bars: [
        { name: 'a', value: 3 },
        { name: 'NULL', value: 1 },
      ],
      leftOut: 0,
    })
  })

  test('says how many rows have no bar', () => {
    const rows = Array.from({ length: 43 }, (_, index) => [`n${index}`, String(index)])
    expect(drawingOf({ columns: columnsOf(['type', 'VARCHAR'], ['rows', 'BIGINT']), rows })).toMatchObject({ leftOut: 3 })
  })

  test.each([
    [
      [222, 215, 0],
      ['0 100', '0 96.8', '0 0'],
    ],
    [
      [30, -10],
      ['25 75', '0 25'],
    ],
    [
      [-4, -1],
      ['0 100', '75 25'],
    ],
    [
      [0, 0],
      ['0 0', '0 0'],
    ],
    [
      [Number.MAX_VALUE, -Number.MAX_VALUE],
      ['50 50', '0 50'],
    ],
  ])('draws bars of %j from zero, in proportion', (values, expected) => {
    const rounded = (share: number) => Math.round(share * 1000) / 10
    expect(spansOf(values).map(({ start, length }) => `${rounded(start)} ${rounded(length)}`)).toEqual(expected)
  })

  test.each([
    [
      'figures',
      columnsOf(['a', 'VARCHAR'], ['b', 'VARCHAR']),
      [
        ['x', 'y'],
        ['x', 'y'],
      ],
    ],
    ['names', columnsOf(['a', 'BIGINT']), [['1'], ['2']]],
    [
      'times that differ',
      columnsOf(['at', 'TIMESTAMP'], ['b', 'BIGINT']),
      [
        ['2026-11-20T08:00:00Z', '1'],
        ['2026-11-20T08:00:00Z', '2'],
      ],
    ],
    ['a second row', columnsOf(['a', 'VARCHAR'], ['b', 'BIGINT']), [['x', '1']]],
  ])('is not offered without %s', (_, columns, rows) => {
    expect(drawingOf({ columns, rows })).toBeUndefined()
  })
})

describe('ready queries', () => {
  const table = (columns: QueryTable['columns'], kind: QueryTable['kind'] = 'view'): QueryTable => ({
    name: 'orders',
    kind,
    columns,
  })
  const titles = (of: QueryTable) => readyQueries(of).map(({ title }) => title)

  test('fit the columns', () => {
    expect(titles(table(columnsOf(['at', 'TIMESTAMP'], ['type', 'VARCHAR'], ['amount', 'DECIMAL(12,2)'])))).toEqual([
      'Latest rows',
      'Count rows',
      'Rows per minute',
      'Most frequent type',
      'Spread of amount',
      'NULLs by column',
    ])
    expect(titles(table(columnsOf(['list', 'TIMESTAMP[]'])))).toEqual(['Look at rows', 'Count rows', 'NULLs by column'])
    expect(titles(table(columnsOf(['ingested_at', 'TIMESTAMP'], ['topic', 'VARCHAR']), 'raw'))).toContain('Records by topic')
  })

  test('quote names that SQL would misread', () => {
    expect([identifier('orders'), identifier('at'), identifier('order'), identifier('e-mail'), identifier('say "x"')]).toEqual([
      'orders',
      '"at"',
      '"order"',
      '"e-mail"',
      '"say ""x"""',
    ])
  })
})

test('the address restores a screen, and nothing else gets in', () => {
  expect(readExploreSearch({ sql: 'SELECT 1', range: 'week', show: 'chart' })).toEqual({
    sql: 'SELECT 1',
    range: 'week',
    show: 'chart',
  })
  expect(readExploreSearch({ sql: 7, range: 'toString', show: 'x', more: 1 })).toEqual({})
  expect(sinceOf('hour', Date.parse('2026-11-20T08:00:00Z'))).toBe('2026-11-20T07:00:00.000Z')
  expect(sinceOf('all', 0)).toBeUndefined()
})
