import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Connection, Database } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import { inspectStatement, StatementRefused } from './statement.ts'

let database: Database
let connection: Connection
beforeAll(async () => {
  database = await Database.open({ directories: [], memoryBytes: 64 * MiB })
  connection = await database.connect()
})
afterAll(() => database.close())

async function tablesOf(sql: string): Promise<readonly string[]> {
  const tables = await inspectStatement(connection, sql)
  return tables.map(({ schema, table, isOptional }) => `${schema}.${table}${isOptional ? '?' : ''}`).toSorted()
}

describe('names each table once', () => {
  test.each([
    ['SELECT * FROM orders', ['.orders']],
    ['FROM orders -- a comment', ['.orders']],
    ['FROM main.orders', ['.orders']],
    ['FROM orders, Orders o2', ['.orders']],
    ['FROM orders.v2 JOIN raw."line 1" USING (id)', ['orders.v2', 'raw.line 1']],
    ['SELECT (SELECT max(a) FROM b) FROM c WHERE d IN (FROM e)', ['.b', '.c', '.e']],
    ['FROM a UNION ALL FROM b EXCEPT FROM c', ['.a', '.b', '.c']],
    ["PIVOT a ON b IN ('x') USING count(*)", ['.a']],
    ['SELECT * FROM range(3), unnest([1]), (VALUES (1)) v', []],
    ['SELECT 1', []],
  ])('%s', async (sql, expected) => {
    expect(await tablesOf(sql)).toEqual(expected)
  })

  test('a name that is also a common table expression may be of no table', async () => {
    expect(await tablesOf('WITH a AS (FROM b), orders AS (FROM orders) FROM a, orders')).toEqual(['.a?', '.b', '.orders?'])
  })
})

describe('refuses', () => {
  test.each([
    ['', 'one SELECT statement'],
    ['SELECT 1; SELECT 2', 'one SELECT statement'],
    ["COPY (SELECT 1) TO 'file'", 'one SELECT statement'],
    ["ATTACH 'other.db'", 'one SELECT statement'],
    ['INSTALL httpfs', 'one SELECT statement'],
    ["SET memory_limit = '100GB'", 'one SELECT statement'],
    ['CREATE TABLE a (b INTEGER)', 'one SELECT statement'],
    ['PRAGMA version', 'one SELECT statement'],
    ['SELEC 1', 'syntax error'],
    ["FROM read_parquet('x')", 'read_parquet'],
    ["FROM Read_Text('/etc/passwd')", 'read_text'],
    ["SELECT 1 WHERE 'a' IN (SELECT content FROM read_blob('/etc/passwd'))", 'read_blob'],
    ["FROM glob('*')", 'glob'],
    ['FROM duckdb_settings()', 'duckdb_settings'],
    ["FROM query('SELECT 1')", 'query'],
    ["SELECT getenv('HOME')", 'getenv'],
    ["SELECT current_setting('threads')", 'current_setting'],
    ['SELECT 1e400', 'too large'],
    ['FROM memory.main.orders', 'one or two parts'],
    ['DESCRIBE orders', 'LIMIT 0'],
    ['SHOW TABLES', 'LIMIT 0'],
    ['FROM a, b, c, d, e, f, g, h, i', 'at most 8 tables'],
  ])('%s', async (sql, message) => {
    const refused = await inspectStatement(connection, sql).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(StatementRefused)
    expect(String(refused)).toContain(message)
  })

  test('a text that would end the literal it is in', async () => {
    await expect(tablesOf("'); COPY (SELECT 1) TO 'x'; --")).rejects.toThrow(StatementRefused)
  })
})
