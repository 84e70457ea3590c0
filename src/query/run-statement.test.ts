import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Database } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import type { QueriedTable } from '#model/query.ts'
import type { FetchedTable } from './query-protocol.ts'
import { runStatement } from './run-statement.ts'

const summary: QueriedTable = {
  ...{ name: 'orders', kind: 'view', view_id: null, view_version: 1, endpoint_id: null },
  ...{ files: 1, bytes: 1, missing: 0, complete: true, may_lack_commits_since: null, oldest: null, newest: null },
}
const name = { schema: '', table: 'orders', isOptional: false }
const orders: FetchedTable = {
  name,
  files: ['0-0.parquet', '0-1.parquet'].map((file) => ({ file, partition: [] })),
  columns: [],
  summary,
}
const empty: FetchedTable = {
  name: { schema: 'orders', table: 'v2', isOptional: false },
  files: [],
  columns: [
    { name: 'a "b"', type: 'HUGEINT' },
    { name: 'times', type: 'TIMESTAMP[]' },
  ],
  summary,
}

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'inlet-query-'))
  await mkdir(join(root, 'mine'))
  const database = await Database.open({ directories: [root], memoryBytes: 64 * MiB })
  const connection = await database.connect()
  const rows = `SELECT i AS id, 'x' || i AS name, TIMESTAMP '2026-01-01' + to_seconds(i) AS seen FROM range(3000) r(i)`
  await connection.run(`COPY (${rows}) TO '${root}/mine/0-0.parquet'`)
  await connection.run(`COPY (${rows} LIMIT 1) TO '${root}/mine/0-1.parquet'`)
  await connection.run(`COPY (SELECT 1 AS secret) TO '${root}/other.parquet'`)
  database.close()
})
afterAll(() => rm(root, { recursive: true }))

const run = (sql: string, options: { readonly maxRows?: number; readonly timeoutMs?: number } = {}) =>
  runStatement(sql, { directory: join(root, 'mine'), tables: [orders, empty], maxRows: 10, ...options })

describe('a statement', () => {
  test('reads all files of a table; values are as in previews', async () => {
    expect(await run('SELECT count(*) AS n, max(seen) AS last, 1.5::DECIMAL(4,2) AS d, {a: 1} AS s FROM orders')).toEqual({
      columns: [
        { name: 'n', type: 'BIGINT' },
        { name: 'last', type: 'TIMESTAMP' },
        { name: 'd', type: 'DECIMAL(4,2)' },
        { name: 's', type: 'STRUCT(a INTEGER)' },
      ].map((column) => ({ ...column, type: expect.stringContaining(column.type.split('(')[0] ?? '') })),
      rows: [['3001', '2026-01-01T00:49:59.000000Z', '1.50', { a: 1 }]],
      row_count: 1,
      truncated: null,
      tables: [summary, summary],
      elapsed_ms: expect.any(Number),
    })
  })

  test('over a table without files returns its columns', async () => {
    const { columns, rows } = await run('FROM orders.v2')
    expect(columns).toEqual([
      { name: 'a "b"', type: 'DECIMAL(38,0)' },
      { name: 'times', type: 'TIMESTAMP WITH TIME ZONE[]' },
    ])
    expect(rows).toEqual([])
  })

  test.each(['file_row_number', 'File_Row_Number'])('reads parts of a merged file that has a column %s', async (column) => {
    const directory = await mkdtemp(join(root, 'merged-'))
    const database = await Database.open({ directories: [directory], memoryBytes: 64 * MiB })
    const connection = await database.connect()
    const rows = `SELECT i AS id, 10 * i AS "${column}", 'x' || i AS "a ""b""" FROM range(9000) r(i)`
    await connection.run(`COPY (${rows}) TO '${directory}/merged.parquet' (ROW_GROUP_SIZE 2048)`)
    database.close()
    const ranges = [
      { first_row: 3, rows: 2 },
      { first_row: 8_500, rows: 1 },
    ]
    const merged: FetchedTable = {
      ...orders,
      files: [{ file: 'merged.parquet', ranges, partition: [{ column: 'city', value: 'Ulm' }] }],
      columns: ['id', column, 'a "b"', 'city'].map((each) => ({ name: each, type: 'VARCHAR' })),
    }
    const result = await runStatement('FROM orders ORDER BY id', { directory, tables: [merged], maxRows: 10 })
    expect(result.columns.map(({ name: shown }) => shown)).toEqual(['id', column, 'a "b"', 'city'])
    expect(result.rows).toEqual([3, 4, 8_500].map((id) => [String(id), String(10 * id), `x${id}`, 'Ulm']))
    const counted = await runStatement('SELECT count(*) FROM orders', { directory, tables: [merged], maxRows: 10 })
    expect(counted.rows).toEqual([['3']])
  })

  test('returns at most so many rows, and says whether there are more', async () => {
    expect(await run('FROM orders LIMIT 10')).toMatchObject({ row_count: 10, truncated: null })
    expect(await run('FROM orders')).toMatchObject({ row_count: 10, truncated: 'rows' })
  })

  test('returns at most so many bytes, and computes no further rows', async () => {
    const { rows, truncated } = await run(`SELECT repeat('x', 100000) FROM orders`, { maxRows: 1_000 })
    expect({ rows: rows.length, truncated }).toEqual({ rows: 83, truncated: 'bytes' })
  })

  test('columns with the same name are told apart', async () => {
    const { columns } = await run('SELECT id, id FROM orders LIMIT 1')
    expect(new Set(columns.map((column) => column.name)).size).toBe(2)
  })

  test('reads no file outside of its directory, even where an inspection would have let it pass', async () => {
    for (const path of [`${root}/other.parquet`, `${root}/mine/../other.parquet`, '/etc/passwd'])
      await expect(run(`FROM read_text('${path}')`)).rejects.toThrow(/permission|disabled|not allowed/i)
  })

  test('that runs too long, needs too much memory or is wrong is refused with a message for its author', async () => {
    const endless = 'SELECT count(*) FROM range(1000000000) a, range(1000000) b WHERE a.range * b.range = 7'
    await expect(run(endless, { timeoutMs: 20 })).rejects.toThrow('longer than 0.02 s')
    await expect(run('SELECT nope FROM orders')).rejects.toThrow('nope')
    const wide = `SELECT ${Array.from({ length: 1_001 }, () => '1').join()}`
    await expect(run(wide)).rejects.toThrow('at most 1000')
  })
})
