import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Database } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import type { QueriedTable } from '#model/query.ts'
import { runs } from '../../test/support/thorough.ts'
import { canMeet } from './conditions.ts'
import { runStatement } from './run-statement.ts'
import { inspectStatement } from './statement.ts'

const columns = [
  { name: 'id', type: 'BIGINT' },
  { name: 'Country', type: 'VARCHAR' },
  { name: 'day', type: 'DATE' },
  { name: 'n', type: 'INTEGER' },
  { name: 'ok', type: 'BOOLEAN' },
]
const partitions = ['', 'DE', 'de', 'ü', null].flatMap((country) =>
  ['2026-11-20', null].flatMap((day) =>
    ['-1', '12'].flatMap((n) =>
      ['true', 'false'].map((ok) => [
        { column: 'Country', value: country },
        ...[
          { column: 'day', value: day },
          { column: 'n', value: n },
          { column: 'ok', value: ok },
        ],
      ]),
    ),
  ),
)
const files = partitions.map((partition, index) => ({ file: `${index}.parquet`, partition }))

let directory = ''
let database: Database
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-conditions-'))
  await mkdir(directory, { recursive: true })
  database = await Database.open({ directories: [directory], memoryBytes: 64 * MiB })
  const connection = await database.connect()
  for (const { file } of files) await connection.run(`COPY (SELECT 7::BIGINT AS id) TO '${directory}/${file}'`)
})
afterAll(async () => {
  database.close()
  await rm(directory, { recursive: true })
})

const name = { schema: '', table: 'orders', isOptional: false }
const summary: QueriedTable = {
  ...{ name: 'orders', kind: 'view' as const, view_id: null, view_version: null, endpoint_id: null },
  ...{ files: 1, bytes: 1, missing: 0, complete: true, may_lack_commits_since: null, oldest: null, newest: null },
}

async function run(sql: string, read: typeof files) {
  const { rows } = await runStatement(sql, { directory, maxRows: 1000, tables: [{ name, columns, files: read, summary }] })
  return rows.map((row) => JSON.stringify(row)).toSorted()
}

async function needed(sql: string) {
  const [table] = await inspectStatement(await database.connect(), sql)
  return files.filter(({ partition }) => canMeet(table?.conditions, partition, columns))
}

test.each<[string, number]>([
  [`SELECT * FROM orders WHERE country = 'DE'`, 8],
  [`SELECT count(*) FROM orders o WHERE o.Country IN ('DE', 'FR') AND n = 12`, 4],
  [`SELECT * FROM orders WHERE day >= '2026-11-21'`, 0],
  [`SELECT * FROM orders WHERE day BETWEEN DATE '2026-11-01' AND DATE '2026-11-30' AND ok = true`, 10],
  [`SELECT * FROM orders WHERE 'DE' = country AND 5 < n`, 4],
  // None of these is understood, so all files are read.
  [`SELECT * FROM orders WHERE country = 'DE' OR n = 12`, 40],
  [`SELECT * FROM orders WHERE lower(country) = 'de'`, 40],
  [`SELECT * FROM orders WHERE NOT country = 'DE'`, 40],
  [`SELECT * FROM orders a JOIN orders b ON a.id = b.id WHERE a.country = 'DE'`, 40],
  [`SELECT * FROM orders AS o(id, day, country) WHERE country = 'DE'`, 40],
  [`SELECT count(*) FROM orders AS o WHERE orders.country = 'DE'`, 40],
  [`SELECT * FROM orders WHERE country IN (${Array(101).fill("'DE'").join()})`, 40],
  // DuckDB casts the text of the column, in which there may be other forms of the day.
  [`SELECT * FROM orders WHERE country = DATE '2026-11-20'`, 32],
  [`SELECT *, (SELECT count(*) FROM orders) FROM orders WHERE country = 'DE'`, 40],
  [`SELECT * FROM orders WHERE country = 'DE' UNION ALL SELECT * FROM orders WHERE country = 'de'`, 16],
  [`WITH orders AS (SELECT * FROM orders WHERE country = 'DE') SELECT * FROM orders WHERE n = 12`, 24],
])('%s reads %i of 40 files', async (sql, count) => {
  expect(await needed(sql)).toHaveLength(count)
})

const column = fc.constantFrom('country', 'orders.country', 'day', 'n', 'ok', 'id')
const constant = fc.constantFrom(
  `'DE'`,
  `'de'`,
  `''`,
  `'ü'`,
  `'2026-11-20'`,
  `DATE '2026-11-20'`,
  '12',
  '-1',
  '11.5',
  'true',
  'NULL',
  `'12'`,
)
const operator = fc.constantFrom('=', '<', '>', '<=', '>=', '<>', 'IS DISTINCT FROM')
const comparison = fc.oneof(
  fc.tuple(column, operator, constant).map((parts) => parts.join(' ')),
  fc.tuple(constant, operator, column).map((parts) => parts.join(' ')),
  fc.tuple(column, fc.array(constant, { minLength: 1, maxLength: 3 })).map(([of, values]) => `${of} IN (${values.join(', ')})`),
  fc.tuple(column, constant, constant).map(([of, from, to]) => `${of} BETWEEN ${from} AND ${to}`),
)
const where = fc.oneof(
  fc.array(comparison, { minLength: 1, maxLength: 3 }).map((all) => all.join(' AND ')),
  fc.tuple(comparison, comparison, fc.constantFrom('OR', 'AND NOT')).map(([a, b, by]) => `${a} ${by} ${b}`),
)

test('a statement has the same rows from the files that it needs as from all', async () => {
  await fc.assert(
    fc.asyncProperty(where, async (condition) => {
      const sql = `SELECT Country, day, n, ok FROM orders WHERE ${condition}`
      const all = await run(sql, files).catch(() => undefined)
      if (all !== undefined) expect(await run(sql, await needed(sql))).toEqual(all)
    }),
    { numRuns: runs(60, 1_000) },
  )
}, 120_000)
