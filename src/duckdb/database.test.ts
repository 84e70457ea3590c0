import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { StorageFailure } from '#lib/storage-failure.ts'
import { type Connection, Database, OutOfMemory, type RowAppender, StatementTimeout } from './database.ts'
import { queryParquet } from './query-parquet.ts'

/** A statement that runs for minutes unless it is stopped. */
const endless = 'SELECT count(*) FROM range(1000000000) a, range(1000000) b WHERE a.range * b.range = 7'

describe('a sandboxed DuckDB', () => {
  let root: string
  let inside: string
  let database: Database
  let connection: Connection

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'inlet-duckdb-'))
    inside = join(root, "in'side")
    await writeFile(join(root, 'secret.csv'), 'a\n1\n')
    database = await Database.open({
      directories: [inside],
      spill: { directory: join(inside, 'spill'), bytesMax: 16 * MiB },
      memoryBytes: 64 * MiB,
    })
    connection = await database.connect()
  })
  afterAll(async () => {
    database.close()
    await rm(root, { recursive: true })
  })

  test('a file that cannot be written is a failure of the storage, a statement that fails is not', async () => {
    const failure = (sql: string) => connection.run(sql).catch((error: unknown) => error)
    const path = `${inside.replaceAll("'", "''")}/gone/file.parquet`
    expect(await failure(`COPY (SELECT 1) TO '${path}'`)).toBeInstanceOf(StorageFailure)
    expect(await failure("SELECT CAST('x' AS INTEGER)")).not.toBeInstanceOf(StorageFailure)
  })

  test.each([
    ['a file elsewhere', () => `SELECT * FROM read_csv('${join(root, 'secret.csv')}')`],
    ['a path with ..', () => `SELECT * FROM read_text('${root}/in''side/../secret.csv')`],
    ['a system file', () => `SELECT * FROM read_text('/etc/hostname')`],
    ['writing elsewhere', () => `COPY (SELECT 1) TO '${join(root, 'out.csv')}'`],
    ['another database', () => `ATTACH '${join(root, 'other.db')}'`],
    ['an extension', () => 'INSTALL httpfs'],
    ['a loaded extension', () => "LOAD 'httpfs'"],
    ['the network', () => "SELECT * FROM read_text('http://127.0.0.1:1/x')"],
    ['enabling external access', () => 'SET enable_external_access = true'],
    ['another directory', () => "SET allowed_directories = ['/']"],
    ['more memory', () => "SET memory_limit = '100GB'"],
    ['unlocking', () => 'SET lock_configuration = false'],
  ])('denies access to %s', async (_, sql) => {
    await expect(connection.run(sql())).rejects.toThrow()
    expect(await readdir(root)).toEqual(['secret.csv'])
  })

  test('a timeout ends a statement, and the connection stays usable', async () => {
    await expect(connection.run(endless, { timeoutMs: 20 })).rejects.toThrow(StatementTimeout)
    expect((await connection.query('SELECT 1')).rows).toEqual([[1]])
  })

  test('a registered function is called once for each row, in order, also with NULLs', async () => {
    const seen: unknown[] = []
    connection.register({
      name: 'seen',
      parameters: ['BIGINT', 'VARCHAR'],
      decide: (argument) => seen.push([argument(0), argument(1)]) % 2 === 1,
    })
    const { rows } = await connection.query(
      `SELECT count(*) FROM (SELECT i, CASE WHEN i % 3 > 0 THEN 'x' || i END AS t FROM range(10000) r(i)) WHERE seen(i, t)`,
    )
    expect(rows).toEqual([['5000']])
    expect(seen).toEqual(Array.from({ length: 10_000 }, (_, i) => [BigInt(i), i % 3 > 0 ? `x${i}` : null]))
  })

  test('an error thrown by a registered function fails the statement', async () => {
    connection.register({
      name: 'throws',
      parameters: ['BIGINT'],
      decide: () => {
        throw new Error('not today')
      },
    })
    await expect(connection.run('SELECT throws(i) FROM range(10) r(i)')).rejects.toThrow('not today')
    expect((await connection.query('SELECT 1')).rows).toEqual([[1]])
  })

  test('spilled data that cannot be written is a failure of the storage, also if rows are appended or a function appends them', async () => {
    const directory = await mkdtemp(join(root, 'full-'))
    // Where data would be spilled, there is a file.
    const spill = { directory: join(directory, 'spill'), bytesMax: 1024 * MiB }
    await writeFile(spill.directory, '')
    const full = await Database.open({ directories: [directory], spill, memoryBytes: 16 * MiB })
    const observer = await full.connect()
    await observer.run('CREATE TABLE rows (text VARCHAR)')
    const append = (appender: RowAppender) => {
      appender.appendVarchar('x'.repeat(200))
      appender.endRow()
      return false
    }
    let appender = await observer.appender('rows')
    const decide = () => append(appender)
    observer.register({ name: 'observed', parameters: ['BIGINT'], decide })
    const connection = await full.connect()
    const failure = await connection.query('SELECT 1 FROM range(300000) WHERE observed(range)').catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(StorageFailure)
    await observer.run('CREATE OR REPLACE TABLE rows (text VARCHAR)')
    appender = await observer.appender('rows')
    const appendAll = () => {
      for (let row = 0; row < 300_000; row += 1) decide()
      appender.flushSync()
    }
    expect(appendAll).toThrow(StorageFailure)
    full.close()
  })

  test('aborting a signal ends a statement with its reason', async () => {
    const controller = new AbortController()
    const running = connection.run(endless, { signal: controller.signal })
    setImmediate(() => controller.abort(new Error('enough')))
    await expect(running).rejects.toThrow('enough')
    await expect(connection.run('SELECT 1', { signal: controller.signal })).rejects.toThrow('enough')
    expect((await connection.query('SELECT 2')).rows).toEqual([[2]])
  })

  test('the error of a function that fails while a signal aborts is not the error of a later statement', async () => {
    const controller = new AbortController()
    connection.registerTable({
      name: 'failing',
      columns: { number: 'BIGINT' },
      open: () => () => {
        controller.abort(new Error('enough'))
        throw new Error('of the function')
      },
    })
    const failing = connection.run('SELECT * FROM failing(0, 1)', { signal: controller.signal })
    await expect(failing).rejects.toThrow('enough')
    await expect(connection.run('SELECT nothing')).rejects.toThrow('nothing')
  })

  test('space for spilled data is limited, and a statement that needs more fails like one that needs more memory', async () => {
    await mkdir(inside, { recursive: true })
    const sql = 'CREATE TEMP TABLE large AS SELECT md5(range::VARCHAR) || md5((range + 1)::VARCHAR) AS text FROM range(3000000)'
    await expect(connection.run(sql)).rejects.toThrow(OutOfMemory)
    expect((await connection.query('SELECT 1')).rows).toEqual([[1]])
  })

  test('a failed allocation of DuckDB is a lack of memory', async () => {
    await expect(connection.run(`SELECT error('std::bad_alloc')`)).rejects.toThrow(OutOfMemory)
    await expect(connection.run(`SELECT error('text: std::bad_alloc')`)).rejects.not.toThrow(OutOfMemory)
  })

  test.each(['VARCHAR', 'BIGINT[]'] as const)(
    'a cell of type %s that memory has no room for is a lack of memory',
    async (type) => {
      connection.registerTable({ name: 'large', columns: { cell: type }, open: () => () => [Buffer.alloc(512 * MiB)] })
      await expect(connection.run('SELECT cell FROM large(0, 1)')).rejects.toThrow(OutOfMemory)
      expect((await connection.query('SELECT 1')).rows).toEqual([[1]])
    },
  )

  test('memory is limited', async () => {
    await expect(connection.run(`SELECT list(range::VARCHAR || repeat('x', 1000)) FROM range(1000000)`)).rejects.toThrow(
      /memory|limit/i,
    )
  })
})

test('queryParquet reads only below its directories', async () => {
  const root = await mkdtemp(join(tmpdir(), 'inlet-query-'))
  try {
    const database = await Database.open({ directories: [root], memoryBytes: 64 * MiB })
    await (await database.connect()).run(`COPY (SELECT 1 AS a, 'x' AS b) TO '${root}/a.parquet'`)
    database.close()
    expect(await queryParquet({ directories: [root], sql: `SELECT * FROM '${root}/*.parquet'` })).toEqual({
      columns: ['a', 'b'],
      types: ['INTEGER', 'VARCHAR'],
      rows: [[1, 'x']],
    })
    await expect(queryParquet({ directories: [join(root, 'other')], sql: `SELECT * FROM '${root}/a.parquet'` })).rejects.toThrow()
  } finally {
    await rm(root, { recursive: true })
  }
})
