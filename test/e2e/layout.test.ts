/** Files of a view with a layout: in folders, merged by partition, and found by queries that need only some of them. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { queryRows } from '../support/parquet.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/use-one.ts'

const program = resolve(import.meta.dirname, '../../src/main.ts')
const definition = {
  columns: [
    { name: 'n', type: 'INTEGER', path: '$.n' },
    { name: 'country', type: 'VARCHAR', path: '$.c' },
    { name: 'dt', type: 'DATE', path: '$.day' },
  ],
  partition_by: ['dt', 'country'],
  sort_by: ['n'],
}

const inlet = useOne(async () => {
  const started = await Installation.create()
  await started.start('control', 'ingest', 'delivery')
  return started
})

const query = (sql: string) => inlet().ok('POST', '/v1/query', { sql })

/** Runs `inlet query`. Returns its lines. */
function command(sql: string, ...more: readonly string[]): readonly string[] {
  const env = { PATH: process.env['PATH'], INLET_URL: inlet().apiUrl, INLET_API_KEY: inlet().apiKey }
  return execFileSync(process.execPath, [program, 'query', sql, ...more], { env, encoding: 'utf8' })
    .trim()
    .split('\n')
}

test('rows are in the folders of their values, and queries fetch those that they need, also after a compaction', async () => {
  const bucket = 'laid-out'
  const { id } = await inlet().endpoint({ bucket, view: { name: 'orders', definition } })
  const places = [
    ['2026-11-20', 'DE'],
    ['2026-11-20', 'Äland'],
    ['2026-11-21', 'DE'],
    ['2026-11-21', null],
  ]
  for (const from of [0, 100]) {
    const lines = places.flatMap(([day, c], at) => [9, 1, 5].map((n) => JSON.stringify({ n: from + 10 * at + n, c, day })))
    const { body } = await inlet().ingest(id, lines.join('\n'))
    await inlet().committed(id, [body.segment_seq])
  }
  const folders = ['dt=2026-11-20/country=DE', 'dt=2026-11-20/country=Äland', 'dt=2026-11-21/country=DE']
  const all = [...folders, 'dt=2026-11-21/country=__HIVE_DEFAULT_PARTITION__']
  const pathOf = (folder: string, root = '') => join(inlet().buckets, bucket, 'in/let', id, root, 'views/orders/v1', folder)
  expect(all.map((folder) => existsSync(pathOf(folder)))).toEqual([true, true, true, true])

  const readFolders = (root: string) =>
    queryRows(
      `SELECT n, CAST(dt AS VARCHAR), country FROM read_parquet('${pathOf('*/*/*.parquet', root)}', hive_partitioning = true) ORDER BY n`,
    )
  const expected = [0, 100].flatMap((from) =>
    places.flatMap(([day, country], at) => [1, 5, 9].map((n) => [from + 10 * at + n, day, country])),
  )
  expect((await readFolders('')).rows).toEqual(expected)

  const check = async () => {
    const whole = await query('SELECT n, dt, country FROM orders ORDER BY n')
    expect(whole).toMatchObject({ rows: expected, tables: [{ files: 8 }] })
    expect(whole.columns.map(({ name }: { name: string }) => name)).toEqual(['n', 'dt', 'country'])
    const one = await query(`SELECT n FROM orders WHERE country = 'DE' AND dt >= '2026-11-21' ORDER BY n`)
    expect(one).toMatchObject({ rows: [[21], [25], [29], [121], [125], [129]], tables: [{ files: 2, complete: true }] })
    expect(await query(`SELECT count(*) FROM orders WHERE country IS NULL`)).toMatchObject({ rows: [['6']] })
    expect(await query(`SELECT count(*) FROM orders WHERE dt = '2026-12-24'`)).toMatchObject({
      rows: [['0']],
      tables: [{ files: 0 }],
    })
    expect(command(`SELECT n FROM orders WHERE country = 'Äland' ORDER BY n`, '--csv')).toEqual([
      'n',
      '11',
      '15',
      '19',
      '111',
      '115',
      '119',
    ])
  }
  await check()
  const to = new Date(Date.now() + 60_000).toISOString()
  const job = await inlet().ok('POST', `/v1/endpoints/${id}/compact`, { to })
  await until('the end of the job', async () => (await inlet().ok('GET', `/v1/jobs/${job.id}`)).finished_at !== null, 60_000)
  expect(await inlet().ok('GET', `/v1/jobs/${job.id}`)).toMatchObject({ status: 'succeeded' })
  expect((await readFolders('compacted')).rows).toEqual(expected)
  await check()
}, 120_000)

test('a repeated event is one row, and is counted in the marker and the metrics', async () => {
  const columns = [
    { name: 'id', type: 'VARCHAR', path: '$.id', hidden: true },
    { name: 'n', type: 'INTEGER', path: '$.n' },
  ]
  const { id, viewId } = await inlet().endpoint({
    bucket: 'once',
    view: { name: 'once', definition: { columns, dedupe_by: ['id'] } },
  })
  const { body } = await inlet().ingest(id, '{"id":"a","n":1}\n{"id":"b","n":2}\n{"id":"a","n":3}\n{"n":4}\n{"n":5}')
  await inlet().committed(id, [body.segment_seq])
  const [marker] = inlet().markers('once', id)
  const outcome = { processed: 5, accepted: 4, dropped: 1, dlq: 0, failed: 0, duplicates: 1 }
  expect(marker?.views).toMatchObject([outcome])
  const { aggregated } = await inlet().ok('GET', `/v1/views/${viewId}/metrics`)
  expect(aggregated.all_time).toMatchObject({ ...outcome, rows: 4 })
  expect((await query('SELECT n FROM once ORDER BY n')).rows).toEqual([[1], [2], [4], [5]])
})
