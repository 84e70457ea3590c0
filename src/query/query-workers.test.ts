import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Database } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { Sandbox } from '#lib/sandbox.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { QueriedTable } from '#model/query.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import type { FetchedTable, TableName } from './query-protocol.ts'
import { type Query, QueryWorkers } from './query-workers.ts'

const never = new AbortController().signal
const summary: QueriedTable = {
  ...{ name: 'orders', kind: 'view', view_id: null, view_version: 1, endpoint_id: null },
  ...{ files: 1, bytes: 1, missing: 0, complete: true, may_lack_commits_since: null, oldest: null, newest: null },
}

const sandbox = await Sandbox.probe()

let root: string
let workers: QueryWorkers
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'inlet-queries-'))
  workers = newWorkers(sandbox)
})
afterEach(async () => {
  await workers.stop()
  await rm(root, { recursive: true })
})

function newWorkers(sandbox: Sandbox, clock: Clock = systemClock): QueryWorkers {
  return new QueryWorkers({
    clock,
    logger: createLogger('test', 'silent'),
    directory: join(root, 'queries'),
    sandbox,
  })
}

/** Writes a file with one row for each table. */
async function fetch(tables: readonly TableName[], directory: string): Promise<readonly FetchedTable[]> {
  const database = await Database.open({ directories: [directory], memoryBytes: 64 * MiB })
  const connection = await database.connect()
  await connection.run(`COPY (SELECT 7 AS id) TO '${directory}/0-0.parquet'`)
  database.close()
  return tables.map((name) => ({ name, files: [{ file: '0-0.parquet', partition: [] }], columns: [], summary }))
}

const query = (sql: string, more: Partial<Query> = {}): Query => ({ sql, maxRows: 10, fetch, ...more })

async function run(given: Query, account = 'a', signal = never) {
  return JSON.parse(Buffer.from(await workers.run(given, account, signal)).toString())
}

const endless = 'SELECT count(*) FROM orders, range(1000000000) a, range(1000000) b WHERE a.range * b.range = 7'

test('runs queries of several accounts, each in a directory that is removed', { timeout: 60_000 }, async () => {
  workers = newWorkers(sandbox, new ManualClock())
  await workers.start()
  const results = await Promise.all(['a', 'b', 'c', 'a'].map((account) => run(query('FROM orders'), account)))
  for (const result of results) expect(result).toMatchObject({ rows: [[7]], tables: [summary] })
  expect(await readdir(join(root, 'queries'))).toEqual([])
})

test('a caller who leaves ends the statement, and its files are removed', { timeout: 60_000 }, async () => {
  await workers.start()
  const gone = new AbortController()
  let fetched = false
  const counted = async (tables: readonly TableName[], directory: string) => {
    const files = await fetch(tables, directory)
    fetched = true
    return files
  }
  const running = workers.run(query(endless, { fetch: counted }), 'a', gone.signal)
  const ended = expect(running).rejects.toThrow('gone')
  await until('the files are there', () => fetched)
  gone.abort(new Error('gone'))
  await ended
  expect(await readdir(join(root, 'queries'))).toEqual([])
  expect(await run(query('FROM orders'))).toMatchObject({ row_count: 1 })
})

test('an error of fetch reaches the caller', { timeout: 60_000 }, async () => {
  await workers.start()
  const failing = () => Promise.reject(new Error('no bucket'))
  await expect(workers.run(query('FROM orders', { fetch: failing }), 'a', never)).rejects.toThrow('no bucket')
  expect(await readdir(join(root, 'queries'))).toEqual([])
})

test('a start removes what a crash left, and leaves what another process uses', async () => {
  const [old, recent] = [join(root, 'queries', 'query-old'), join(root, 'queries', 'query-recent')]
  for (const directory of [old, recent]) {
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, '0-0.parquet'), 'x')
  }
  await utimes(old, 0, 0)
  await workers.start()
  expect(await readdir(join(root, 'queries'))).toEqual(['query-recent'])
})

test.skipIf(process.getuid?.() !== 0 || sandbox.missing.length > 0)(
  'another user reads the files of a query, in a data directory that is closed to it',
  { timeout: 60_000 },
  async () => {
    workers = newWorkers(await sandbox.as({ uid: 65_534, gid: 65_534 }))
    await workers.start()
    expect(await run(query('FROM orders'))).toMatchObject({ rows: [[7]] })
  },
)
