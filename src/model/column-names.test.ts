import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { queryRows } from '../../test/support/parquet.ts'
import { nameWarnings, takenNames } from './column-names.ts'
import type { Definition } from './definition.ts'
import { reservingEngines } from './reserved-words.ts'

const named = (...names: readonly string[]): Definition => ({
  columns: names.map((name) => ({ name, type: 'VARCHAR', path: '$.a' })),
})

describe('a column with the name of the folders', () => {
  test('is hidden by the date of the folder in DuckDB', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'inlet-dt-'))
    try {
      await mkdir(join(directory, 'dt=2026-11-20'))
      await queryRows(`COPY (SELECT 'mine' AS dt, 'mine' AS other) TO '${directory}/dt=2026-11-20/1.parquet'`)
      const { rows } = await queryRows(`SELECT dt, other FROM '${directory}/*/*.parquet'`)
      expect(rows).toEqual([['2026-11-20', 'mine']])
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  test('is rejected in any case, with the reason', () => {
    const errors = takenNames(named('a', 'dt', 'DT', 'Dt', 'dt_', 'adt'))
    expect(errors.map(({ path }) => path)).toEqual(['columns.1.name', 'columns.2.name', 'columns.3.name'])
    expect(errors[0]?.message).toContain('the date of the folder instead of your values')
  })

  test('of partition_by must be a date', () => {
    const columns = (type: string) => [{ name: 'dt', type, path: '$.dt' }]
    expect(takenNames({ columns: columns('DATE'), partition_by: ['dt'] })).toEqual([])
    const [error] = takenNames({ columns: columns('VARCHAR'), partition_by: ['dt'] })
    expect(error).toMatchObject({ path: 'columns.0.type', message: expect.stringContaining('must be DATE: this column of') })
  })
})

describe('warnings about names', () => {
  test.each([
    [
      'order',
      'reserved_word',
      'is a reserved word in DuckDB, Spark, Trino, BigQuery, Snowflake, Postgres and Redshift: queries there must quote it',
    ],
    ['AT', 'reserved_word', 'in DuckDB and BigQuery: queries there must quote it. Another name, such as at_'],
    ['timestamp', 'reserved_word', 'in Redshift:'],
    ['_PARTITIONTIME', 'reserved_prefix', 'begins with _PARTITION, which BigQuery does not accept'],
    ['a b', 'name_characters', 'needs quotes in queries, and Delta tables in Spark do not accept it: use letters'],
    ['a.b', 'name_characters', 'and BigQuery does not accept it'],
    ['(a)', 'name_characters', 'Delta tables in Spark and BigQuery do not accept it'],
    ['größe', 'name_characters', 'needs quotes in queries: use letters'],
    ['1st', 'name_characters', 'begin with a letter'],
  ])('%s: %s', (name, code, message) => {
    const [warning, ...more] = nameWarnings(named('fine', name))
    expect(warning).toMatchObject({ path: 'columns.1.name', name, code })
    expect(warning?.message).toContain(message)
    expect(more).toEqual([])
  })

  test('there are none for plain names', () => {
    expect(nameWarnings(named('id', 'event_type', 'created_at', 'userId', '_x', 'name', 'value', 'date'))).toEqual([])
    expect(reservingEngines('constructor')).toEqual([])
  })
})

test('DuckDB itself reserves no word that the list lacks', async () => {
  const { rows } = await queryRows(
    `SELECT DISTINCT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')`,
  )
  expect(rows.map(([word]) => String(word)).filter((word) => !reservingEngines(word).includes('DuckDB'))).toEqual([])
})
