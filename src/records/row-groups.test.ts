/** The row groups of files decide how many requests a reader sends, and their version whether it can read them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Database } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import { queryRows } from '../../test/support/parquet.ts'
import { buildLimits, rowGroupBytesWithin } from './limits.ts'
import { mergeParquet } from './merge-parquet.ts'
import { copyToParquetSql } from './parquet-writer.ts'

let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-row-groups-'))
})
afterAll(() => rm(directory, { recursive: true }))

/** Rows of about 170 bytes in memory. */
const events = (from: number, to: number) =>
  `SELECT i AS id, md5(i::VARCHAR) || md5((i + 1)::VARCHAR) AS event_id, 'https://example.com/' || hash(i) AS referrer, (i * 7919) % 1000000 AS user_id FROM range(${from}, ${to}) AS t(i)`

async function write(name: string, select: string, memoryBytes = 128 * MiB): Promise<string> {
  const path = join(directory, name)
  const database = await Database.open({ directories: [directory], memoryBytes })
  try {
    await (await database.connect()).run(copyToParquetSql(select, path, rowGroupBytesWithin(memoryBytes)))
    return path
  } finally {
    database.close()
  }
}

/** The rows of each row group: a reader sends a request for each, or one for each of its columns. */
async function groupsOf(path: string): Promise<readonly number[]> {
  const { rows } = await queryRows(
    `SELECT max(row_group_num_rows) FROM parquet_metadata('${path}') GROUP BY row_group_id ORDER BY row_group_id`,
  )
  return rows.map(([count]) => Number(count))
}

test('a reader of a fresh file needs few requests, and of a merged one fewer', async () => {
  const files = await Promise.all([0, 1].map((part) => write(`part-${part}`, events(part * 150_000, (part + 1) * 150_000))))
  // 25 MB in memory each. With 4 MiB there were seven.
  for (const file of files) expect((await groupsOf(file)).length).toBeLessThanOrEqual(4)
  const path = join(directory, 'merged')
  const sources = files.map((file) => ({ path: file, rows: 150_000 }))
  const { signal } = new AbortController()
  expect(await mergeParquet({ sources, path, memoryBytes: 256 * MiB, signal })).toBe(300_000)
  expect(await groupsOf(path)).toEqual([300_000])
  // Where memory is short, row groups are smaller.
  const small = join(directory, 'merged in little memory')
  expect(await mergeParquet({ sources, path: small, memoryBytes: 64 * MiB, signal })).toBe(300_000)
  const groups = await groupsOf(small)
  expect(groups.length).toBeGreaterThan(2)
  expect(groups.reduce((sum, rows) => sum + rows, 0)).toBe(300_000)
  const { rows } = await queryRows(
    `SELECT count(*) FROM read_parquet('${small}', file_row_number = true) WHERE id <> file_row_number`,
  )
  expect(rows).toEqual([['0']])
})

test('short rows are not cut at the number that DuckDB takes if it is not told', async () => {
  expect(await groupsOf(await write('short', 'SELECT i::INTEGER AS n FROM range(500_000) AS t(i)'))).toEqual([500_000])
})

test('a row group takes a part of the memory of its database', () => {
  expect(rowGroupBytesWithin(100 * MiB)).toBe(5 * MiB)
  expect(rowGroupBytesWithin(1024 * MiB)).toBe(buildLimits.rowGroupBytes)
})

test('files have version 1 of the format, whose encodings every reader knows', async () => {
  const path = await write(
    'extremes',
    'SELECT unnest([1, -2147483648, 2147483647, 0]::INTEGER[]) AS n, unnest([1.5, 1.5, NULL, 2]) AS d',
  )
  const { rows } = await queryRows(`SELECT DISTINCT encodings FROM parquet_metadata('${path}')`)
  for (const [encodings] of rows) expect(encodings).toMatch(/^(PLAIN|PLAIN_DICTIONARY|RLE|, )+$/)
  expect((await queryRows(`SELECT format_version FROM parquet_file_metadata('${path}')`)).rows).toEqual([['1']])
})
