/** Files that were merged are removed. Everything in Inlet that reads delivered rows finds them where they are now. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, renameSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const program = resolve(import.meta.dirname, '../../src/main.ts')
const definition = { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true }] }
const bucket = 'removed'

type Receipt = { readonly node_id: string; readonly segment_seq: number }

describe('a removal', () => {
  let inlet: Installation
  let id = ''
  const receipts: Receipt[] = []

  beforeAll(async () => {
    inlet = await Installation.create()
    await inlet.start('control', 'ingest', 'delivery')
    ;({ id } = await inlet.endpoint({
      bucket,
      view: { name: 'numbers', definition },
      output_formats: ['parquet', 'parquet_views'],
    }))
    await inlet.ok('PATCH', `/v1/endpoints/${id}`, { compaction: { period: 'day', remove_after_hours: 1 } })
    for (const n of [0, 2, 4]) await send(n)
    expect(await compact()).toMatchObject({ status: 'succeeded', segments: { total: 2, done: 2 } })
    await send(6)
    hasPassed(2)
    expect(await compact()).toMatchObject({ status: 'succeeded', segments: { total: 2, done: 2 }, counters: { processed: 0 } })
  })
  afterAll(() => inlet?.[Symbol.asyncDispose]())

  async function send(n: number): Promise<void> {
    const { body } = await inlet.ingest(id, `{"n":${n}}\n{"n":${n + 1}}`)
    receipts.push(body)
    await inlet.committed(id, [body.segment_seq])
  }

  async function ended(job: { readonly id: string }) {
    await until('the end of the job', async () => (await inlet.ok('GET', `/v1/jobs/${job.id}`)).finished_at !== null, 60_000)
    return inlet.ok('GET', `/v1/jobs/${job.id}`)
  }

  const compact = async () =>
    ended(await inlet.ok('POST', `/v1/endpoints/${id}/compact`, { to: new Date(Date.now() + 60_000).toISOString() }))

  /** Makes the compactions older, as if so many hours had passed. */
  function hasPassed(hours: number): void {
    using db = new DatabaseSync(join(inlet.directory, 'inlet.db'), { timeout: 10_000 })
    db.exec(`UPDATE compactions SET published_at = published_at - ${hours * 3_600_000}`)
  }

  const query = async (sql: string) => (await inlet.ok('POST', '/v1/query', { sql })).rows
  const files = (kind: string) => inlet.artifacts(bucket, id, kind)

  test('removes the files that were merged, and no others', () => {
    for (const kind of ['parquet', 'views/numbers/v1'])
      expect(files(kind).map((path) => existsSync(path))).toEqual([false, false, false, true])
  })

  test('queries read each row once, in the merged files and the others, also of a part of the time', async () => {
    expect(await query('SELECT n FROM numbers ORDER BY n')).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((n) => [n]))
    const { name } = await inlet.ok('GET', `/v1/endpoints/${id}`)
    expect(await query(`SELECT count(*), count(DISTINCT payload) FROM raw."${name}"`)).toEqual(
      [[8, 8]].map((row) => row.map(String)),
    )
    const commits = (await inlet.ok('GET', `/v1/endpoints/${id}/commits`)).items
    const [second, third] = [commits[2].uploaded_at, commits[1].uploaded_at]
    const part = await inlet.ok('POST', '/v1/query', { sql: 'SELECT n FROM numbers ORDER BY n', since: second, until: third })
    expect(part).toMatchObject({ rows: [[2], [3]], tables: [{ missing: 0, complete: true }] })
  })

  test.runIf(isThorough)(
    'inlet query reads each row once too, also of a part of the time, and says if a file is gone',
    async () => {
      const env = { PATH: process.env['PATH'], INLET_URL: inlet.apiUrl, INLET_API_KEY: inlet.apiKey }
      const run = (...args: readonly string[]) => {
        const { stdout, stderr, status } = spawnSync(process.execPath, [program, 'query', ...args], { env, encoding: 'utf8' })
        return { stdout, stderr, status }
      }
      const numbers = 'SELECT n FROM numbers ORDER BY n'
      const rows = (...found: readonly number[]) => ({ stdout: `${['n', ...found].join('\n')}\n`, stderr: '', status: 0 })
      expect(run(numbers)).toEqual(rows(0, 1, 2, 3, 4, 5, 6, 7))
      expect(run(`SELECT count(DISTINCT payload) AS n FROM raw."${id}"`)).toEqual(rows(8))
      const [, third, second] = (await inlet.ok('GET', `/v1/endpoints/${id}/commits`)).items
      const part = ['--since', second.uploaded_at, '--until', third.uploaded_at]
      expect(run(numbers, ...part)).toEqual(rows(2, 3))
      const last = files('views/numbers/v1').at(-1) ?? ''
      renameSync(last, `${last}.away`)
      const less = run(numbers)
      renameSync(`${last}.away`, last)
      const stderr = '1 of 2 files are no longer in the bucket: their rows are left out\n'
      expect(less).toEqual({ ...rows(0, 1, 2, 3, 4, 5), stderr })
    },
  )

  test('the records of a receipt are those of its segment alone', async () => {
    for (const [index, { node_id, segment_seq }] of receipts.entries()) {
      const { items } = await inlet.ok('GET', `/v1/endpoints/${id}/records?node_id=${node_id}&segment_seq=${segment_seq}`)
      expect(items.map(({ record }: { record: string }) => record)).toEqual([`{"n":${2 * index + 1}}`, `{"n":${2 * index}}`])
    }
    expect((await inlet.ok('GET', `/v1/endpoints/${id}/records`)).items).toHaveLength(8)
    expect(await inlet.ok('POST', '/v1/views/suggest', { endpoint_id: id })).toMatchObject({
      definition: { columns: [{ name: 'n' }] },
    })
  })

  test('a commit says where the rows of its files are, and links there', async () => {
    const commits = (await inlet.ok('GET', `/v1/endpoints/${id}/commits`)).items
    const moved = commits.map(
      ({ artifacts }: { artifacts: Record<string, { moved_to?: { first_row: number } }> }) =>
        artifacts['views/numbers/v1']?.moved_to?.first_row,
    )
    expect(moved).toEqual([undefined, 4, 2, 0])
    const listed = await inlet.ok('GET', `/v1/endpoints/${id}/commits/${commits[1].id}/files`)
    for (const { kind, moved_to, download_url } of listed.files) {
      expect((await fetch(download_url)).status).toBe(200)
      expect(moved_to !== undefined).toBe(kind === 'parquet' || kind === 'views/numbers/v1')
    }
  })

  test('a backfill gets exactly the records of each segment', async () => {
    const wide = { columns: [...definition.columns, { name: 'twice', type: 'INTEGER', path: '$.n' }] }
    const view = await inlet.ok('POST', '/v1/views', { name: 'wide', definition: wide })
    await inlet.ok('POST', `/v1/views/${view.id}/publish`)
    const job = await ended(await inlet.ok('POST', `/v1/views/${view.id}/backfill`, { endpoint_id: id }))
    expect(job).toMatchObject({
      status: 'succeeded',
      last_error: null,
      segments: { total: 4, done: 4 },
      counters: { accepted: 8 },
    })
    const rows = await Promise.all(files('views/wide/v1').map((path) => readWithDuckDb([path])))
    expect(rows.map((some) => some.map(({ n }) => Number(n))).toSorted()).toEqual([0, 2, 4, 6].map((n) => [n, n + 1]))
    expect(await query('SELECT n FROM wide ORDER BY n')).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((n) => [n]))
  })

  test.runIf(isThorough)('a database that lost its compactions learns from their markers that files may be gone', async () => {
    await inlet.end('control', 'SIGTERM')
    {
      using db = new DatabaseSync(join(inlet.directory, 'inlet.db'))
      db.exec('PRAGMA foreign_keys = ON; DELETE FROM compactions; DELETE FROM jobs')
    }
    const rebuilt = execFileSync(process.execPath, [program, 'commits', 'rebuild', '--endpoint', id], {
      env: { PATH: process.env['PATH'], INLET_DATA_DIR: inlet.directory },
      encoding: 'utf8',
    })
    expect(rebuilt).toContain('2 recorded')
    await inlet.start('control')
    expect(await query('SELECT n FROM numbers ORDER BY n')).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((n) => [n]))
  })
})
