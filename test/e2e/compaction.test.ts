/** Small files become one, those that were merged are removed, and everything in Inlet that reads delivered rows finds them. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, describe, expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/use-one.ts'

type CompactionMarker = {
  readonly artifacts: object
  readonly compacted: {
    readonly kind: string
    readonly key: string
    readonly bytes: number
    readonly sha256: string
    readonly sources: readonly { readonly id: string }[]
  }
}

type Receipt = { readonly node_id: string; readonly segment_seq: number }

const program = resolve(import.meta.dirname, '../../src/main.ts')
const definition = { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true }] }

const inlet = useOne(async () => {
  const started = await Installation.create()
  await started.start('control', 'ingest', 'delivery')
  return started
})

const to = () => new Date(Date.now() + 60_000).toISOString()

async function ended(job: { readonly id: string }) {
  await until('the end of the job', async () => (await inlet().ok('GET', `/v1/jobs/${job.id}`)).finished_at !== null, 60_000)
  return inlet().ok('GET', `/v1/jobs/${job.id}`)
}

const compact = async (id: string) => ended(await inlet().ok('POST', `/v1/endpoints/${id}/compact`, { to: to() }))

describe('a compaction', () => {
  let id = ''
  const bucket = 'compacted'
  beforeAll(async () => {
    ;({ id } = await inlet().endpoint({ bucket, view: { name: 'merged', definition } }))
  })

  const compactions = () =>
    (inlet().markers(bucket, id) as unknown as readonly CompactionMarker[]).filter(({ compacted }) => compacted !== undefined)
  const commits = () =>
    inlet()
      .markers(bucket, id)
      .filter(({ seq }) => seq !== undefined)

  async function send(...numbers: readonly number[]): Promise<void> {
    for (const n of numbers) {
      const { body } = await inlet().ingest(id, `{"n":${n}}\n{"n":"?"}\n{"n":${n + 1}}`)
      await inlet().committed(id, [body.segment_seq])
    }
  }

  test('merges the files of each kind into one, in the order of the segments', async () => {
    await send(0, 10, 20, 30)
    expect(await compact(id)).toMatchObject({
      ...{ kind: 'compaction', status: 'succeeded', view_id: null, last_error: null },
      segments: { total: 2, done: 2, skipped: 0, failed: 0 },
      counters: { processed: 8 + 12, accepted: 8 + 12 },
    })
    const made = new Map(compactions().map((marker) => [marker.compacted.kind, marker]))
    expect([...made.keys()].toSorted()).toEqual(['parquet', 'views/merged/v1'])
    const read = async (kind: string) => {
      const { compacted, artifacts } = made.get(kind) ?? expect.fail(kind)
      expect(artifacts).toEqual({})
      const file = readFileSync(join(inlet().buckets, bucket, compacted.key))
      expect([file.length, createHash('sha256').update(file).digest('hex')]).toEqual([compacted.bytes, compacted.sha256])
      expect(compacted.sources.map((source) => source.id)).toEqual(commits().map((commit) => commit.id))
      return readWithDuckDb([join(inlet().buckets, bucket, compacted.key)])
    }
    expect((await read('views/merged/v1')).map(({ n }) => Number(n))).toEqual([0, 1, 10, 11, 20, 21, 30, 31])
    const raw = await read('parquet')
    expect(raw.map(({ payload }) => payload).slice(0, 4)).toEqual(['{"n":0}', '{"n":"?"}', '{"n":1}', '{"n":10}'])
    expect(raw.map(({ record_index }) => Number(record_index))).toEqual([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
  })
})

describe('a removal', () => {
  let id = ''
  const bucket = 'removed'
  const receipts: Receipt[] = []

  beforeAll(async () => {
    const view = { name: 'numbers', definition }
    ;({ id } = await inlet().endpoint({ bucket, view, output_formats: ['parquet', 'parquet_views'] }))
    await inlet().ok('PATCH', `/v1/endpoints/${id}`, { compaction: { period: 'day', remove_after_hours: 1 } })
    for (const n of [0, 2, 4]) await send(n)
    expect(await compact(id)).toMatchObject({ status: 'succeeded', segments: { total: 2, done: 2 } })
    await send(6)
    hasPassed(2)
    expect(await compact(id)).toMatchObject({ status: 'succeeded', segments: { total: 2, done: 2 }, counters: { processed: 0 } })
  })

  async function send(n: number): Promise<void> {
    const { body } = await inlet().ingest(id, `{"n":${n}}\n{"n":${n + 1}}`)
    receipts.push(body)
    await inlet().committed(id, [body.segment_seq])
  }

  /** Makes the compactions older, as if so many hours had passed. */
  function hasPassed(hours: number): void {
    using db = new DatabaseSync(join(inlet().directory, 'inlet.db'), { timeout: 10_000 })
    db.exec(`UPDATE compactions SET published_at = published_at - ${hours * 3_600_000}`)
  }

  const query = async (sql: string) => (await inlet().ok('POST', '/v1/query', { sql })).rows
  const files = (kind: string) => inlet().artifacts(bucket, id, kind)

  test('removes the files that were merged, and no others', () => {
    for (const kind of ['parquet', 'views/numbers/v1'])
      expect(files(kind).map((path) => existsSync(path))).toEqual([false, false, false, true])
  })

  test('queries read each row once, in the merged files and the others, also of a part of the time', async () => {
    expect(await query('SELECT n FROM numbers ORDER BY n')).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((n) => [n]))
    const { name } = await inlet().ok('GET', `/v1/endpoints/${id}`)
    expect(await query(`SELECT count(*), count(DISTINCT payload) FROM raw."${name}"`)).toEqual(
      [[8, 8]].map((row) => row.map(String)),
    )
    const commits = (await inlet().ok('GET', `/v1/endpoints/${id}/commits`)).items
    const [second, third] = [commits[2].uploaded_at, commits[1].uploaded_at]
    const part = await inlet().ok('POST', '/v1/query', { sql: 'SELECT n FROM numbers ORDER BY n', since: second, until: third })
    expect(part).toMatchObject({ rows: [[2], [3]], tables: [{ missing: 0, complete: true }] })
  })

  test.runIf(isThorough)(
    'inlet query reads each row once too, also of a part of the time, and says if a file is gone',
    async () => {
      const env = { PATH: process.env['PATH'], INLET_URL: inlet().apiUrl, INLET_API_KEY: inlet().apiKey }
      const run = (...args: readonly string[]) => {
        const { stdout, stderr, status } = spawnSync(process.execPath, [program, 'query', ...args], { env, encoding: 'utf8' })
        return { stdout, stderr, status }
      }
      const numbers = 'SELECT n FROM numbers ORDER BY n'
      const rows = (...found: readonly number[]) => ({ stdout: `${['n', ...found].join('\n')}\n`, stderr: '', status: 0 })
      expect(run(numbers)).toEqual(rows(0, 1, 2, 3, 4, 5, 6, 7))
      expect(run(`SELECT count(DISTINCT payload) AS n FROM raw."${id}"`)).toEqual(rows(8))
      const [, third, second] = (await inlet().ok('GET', `/v1/endpoints/${id}/commits`)).items
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
      const { items } = await inlet().ok('GET', `/v1/endpoints/${id}/records?node_id=${node_id}&segment_seq=${segment_seq}`)
      expect(items.map(({ record }: { record: string }) => record)).toEqual([`{"n":${2 * index + 1}}`, `{"n":${2 * index}}`])
    }
    expect((await inlet().ok('GET', `/v1/endpoints/${id}/records`)).items).toHaveLength(8)
    expect(await inlet().ok('POST', '/v1/views/suggest', { endpoint_id: id })).toMatchObject({
      definition: { columns: [{ name: 'n' }] },
    })
  })

  test('a commit says where the rows of its files are, and links there', async () => {
    const commits = (await inlet().ok('GET', `/v1/endpoints/${id}/commits`)).items
    const moved = commits.map(
      ({ artifacts }: { artifacts: Record<string, { moved_to?: { first_row: number } }> }) =>
        artifacts['views/numbers/v1']?.moved_to?.first_row,
    )
    expect(moved).toEqual([undefined, 4, 2, 0])
    const listed = await inlet().ok('GET', `/v1/endpoints/${id}/commits/${commits[1].id}/files`)
    for (const { kind, moved_to, download_url } of listed.files) {
      expect((await fetch(download_url)).status).toBe(200)
      expect(moved_to !== undefined).toBe(kind === 'parquet' || kind === 'views/numbers/v1')
    }
  })

  test('a backfill gets exactly the records of each segment', async () => {
    const wide = { columns: [...definition.columns, { name: 'twice', type: 'INTEGER', path: '$.n' }] }
    const view = await inlet().ok('POST', '/v1/views', { name: 'wide', definition: wide })
    await inlet().ok('POST', `/v1/views/${view.id}/publish`)
    const job = await ended(await inlet().ok('POST', `/v1/views/${view.id}/backfill`, { endpoint_id: id }))
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
})

/** Delivery finds damage in a bucket by itself, and the status of the endpoint says so. */
test('a file whose content changed in the bucket is a reason of the status until it is repaired', async () => {
  const bucket = 'scrubbed'
  const { id } = await inlet().endpoint({ bucket, output_formats: ['parquet'] })
  const { body } = await inlet().ingest(id, '{"n":1}')
  await inlet().committed(id, [body.segment_seq])
  await inlet().end('delivery', 'SIGTERM')
  const [path = ''] = inlet().artifacts(bucket, id, 'parquet')
  const intact = readFileSync(path)
  const bytes = Buffer.from(intact)
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1
  writeFileSync(path, bytes)
  const due = { due_at: '2026-01-01T00:00:00.000Z', running: null, completed: null, findings: [], unlisted: 0 }
  writeFileSync(join(inlet().directory, 'node/scrub.json'), JSON.stringify(due))

  await inlet().start('delivery')
  const reasons = async (): Promise<readonly string[]> => (await inlet().ok('GET', `/v1/endpoints/${id}`)).status_reasons
  const isFound = async () => (await reasons()).some((reason) => reason.includes('the scrub found'))
  await until('the damage is in the status', isFound, 60_000)
  const [reason = ''] = (await reasons()).filter((each) => each.includes('the scrub found'))
  expect(reason).toMatch(/^the scrub found 1 damaged file: .*\.parquet .*; inlet scrub on node .* lists all and says what to do$/)

  await inlet().end('delivery', 'SIGTERM')
  writeFileSync(path, intact)
  await inlet().start('delivery')
  await until('the damage is gone from the status', async () => !(await isFound()), 60_000)
})
