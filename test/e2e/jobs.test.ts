/** A new version of a view runs over segments that were committed before: the result equals live delivery, without duplicates. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb, readWithHyparquet, runInDuckDb } from '../support/parquet.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

/** Rejects an `amount` that is not an integer. */
const strict = {
  columns: [
    { name: 'n', type: 'INTEGER', path: '$.n', required: true },
    { name: 'amount', type: 'INTEGER', path: '$.amount', cast_failures: 'dlq' },
    { name: 'at', type: 'TIMESTAMP', path: '$$.ingested_at' },
    { name: 'protocol', type: 'VARCHAR', path: '$$.protocol' },
  ],
  filters: [{ condition: 'n % 10 <> 9' }],
}
/** The repaired version: some of those amounts are merely large. */
const lenient = {
  ...strict,
  columns: strict.columns.map((column) => ({ ...column, ...(column.name === 'amount' ? { type: 'BIGINT' } : {}) })),
}

/** Ten records: one is dropped, one has a large integer, one has text for a number, one is not JSON, one is not UTF-8. */
function record(n: number): Buffer {
  if (n % 10 === 3) return Buffer.from(`{"n":${n},"amount":"${3e9 + n}","text":"\u2028ü"}`)
  if (n % 10 === 5) return Buffer.from(`{"n":${n},"amount":"many"}`)
  if (n % 10 === 6) return Buffer.from(`{"n":${n}`)
  if (n % 10 === 7) return Buffer.concat([Buffer.from(`{"n":${n},"text":"`), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
  return Buffer.from(`{"n":${n},"amount":${n * 2}}`)
}

function tenRecords(segment: number): Buffer<ArrayBuffer> {
  const lines = Array.from({ length: 10 }, (_, index) => [record(segment * 10 + index), Buffer.from('\n')])
  return Buffer.concat(lines.flat())
}

/** A row for each item. */
const itemsOf = (type: string) => ({
  expand: '$.items[*]',
  columns: [
    { name: 'id', type: 'INTEGER', path: '$.id' },
    { name: 'n', type, path: '$item.n', cast_failures: 'dlq' },
  ],
})
/** Three items are written, an order has an item with text for a number, and one is empty. */
const orders = [
  { id: 1, items: [{ n: 1 }, { n: 2 }, { n: 3 }] },
  { id: 2, items: [{ n: 4 }, { n: 'many' }] },
  { id: 3, items: [] },
]

// biome-ignore lint/suspicious/noExplicitAny: answers and markers of every shape
type Loose = any

let labs = 0

class Lab {
  readonly installation: Installation
  /** Name of the view, and of the bucket. */
  readonly name: string
  readonly endpointId: string
  readonly first: string
  readonly seqs = new Set<number>()

  private constructor(installation: Installation, name: string, endpointId: string, first: string) {
    this.installation = installation
    this.name = name
    this.endpointId = endpointId
    this.first = first
  }

  /** Attaches version 1, which is strict, and commits `segments` segments of ten records each. */
  static async create(
    installation: Installation,
    segments: number,
    output_formats: readonly string[],
    {
      definition = strict,
      linesOf = tenRecords,
    }: { definition?: object; linesOf?: (segment: number) => Buffer<ArrayBuffer> } = {},
  ): Promise<Lab> {
    labs += 1
    const name = `numbers${labs}`
    const { id, viewId } = await installation.endpoint({
      bucket: name.replace('_', '-'),
      view: { name, definition },
      output_formats,
    })
    const lab = new Lab(installation, name, id, viewId ?? '')
    for (let segment = 0; segment < segments; segment += 1) {
      const { body } = await installation.ingest(id, linesOf(segment))
      lab.seqs.add(body.segment_seq)
      await until('the next segment', async () => installation.walFiles(id).every((name) => !name.endsWith('.open')), 10_000)
    }
    await installation.committed(id, lab.seqs)
    expect(lab.seqs.size).toBe(segments)
    return lab
  }

  /** Publishes the next version. */
  async publish(definition: unknown): Promise<string> {
    const { id } = await this.installation.ok('POST', `/v1/views/${this.first}/versions`)
    await this.installation.ok('PATCH', `/v1/views/${id}`, { definition })
    await this.installation.ok('POST', `/v1/views/${id}/publish`)
    return id
  }

  start(kind: 'backfill' | 'redrive', viewId: string, more: object = {}): Promise<Loose> {
    return this.installation.ok('POST', `/v1/views/${viewId}/${kind}`, { endpoint_id: this.endpointId, ...more })
  }

  /** Metrics of a version for all endpoints, with its columns. */
  async metrics(viewId: string): Promise<Loose> {
    const { aggregated } = await this.installation.ok('GET', `/v1/views/${viewId}/metrics?detail=columns`)
    const { unmapped_paths: _, ...metrics } = aggregated
    return metrics
  }

  job(id: string): Promise<Loose> {
    return this.installation.ok('GET', `/v1/jobs/${id}`)
  }

  async untilFinished(id: string): Promise<Loose> {
    await until(
      'the end of the job',
      async () => (await this.job(id).catch(() => ({ finished_at: null }))).finished_at !== null,
      90_000,
    )
    return this.job(id)
  }

  /** Files of an artifact kind, found through the markers alone, as readers do. */
  files(kind: string): readonly string[] {
    return this.installation.artifacts(this.name, this.endpointId, kind)
  }

  objects(folder: string): readonly string[] {
    const path = join(this.installation.buckets, this.name, 'in/let', this.endpointId, folder)
    if (!existsSync(path)) return []
    const names = readdirSync(path, { recursive: true, encoding: 'utf8' })
    return names.filter((name) => /\.(parquet|gz|json)$/.test(name)).toSorted()
  }

  dlq(kind: string): readonly Loose[] {
    const rows = this.files(kind).flatMap((path) => gunzipSync(readFileSync(path)).toString().trimEnd().split('\n'))
    return rows.map((row) => JSON.parse(row))
  }
}

/** The first query of docs/readers.md, over another bucket, endpoint and view. */
function documentedQuery(folder: string, endpointId: string, view: string): readonly string[] {
  const text = readFileSync(resolve(import.meta.dirname, '../../docs/readers.md'), 'utf8')
  const [, sql = ''] = /```sql duckdb\n([^`]*)```/.exec(text) ?? []
  const ours = sql
    .replace('s3://my-bucket', folder)
    .replace(/[0-9a-f-]{36}/, endpointId)
    .replaceAll('views/orders/v1', view)
  return ours.split(';').filter((statement) => statement.trim() !== '')
}

const byN = (rows: readonly Loose[]) => rows.toSorted((a, b) => Number(a.n) - Number(b.n))
const byIndex = (rows: readonly Loose[]) =>
  rows.toSorted((a, b) => a.segment_seq - b.segment_seq || a.record_index - b.record_index)

describeWith('processes', 'jobs', () => {
  let installation: Installation
  beforeAll(async () => {
    installation = await Installation.create()
    await installation.start('control', 'ingest', 'delivery')
  })
  afterAll(() => installation[Symbol.asyncDispose]())

  describe('backfill', () => {
    // A backfill reads the segments file where there is one, else raw Parquet.
    test.each([[['segments', 'parquet_views']], [['parquet', 'parquet_views']]].slice(runs(1, 0)))(
      'of %j equals live delivery through crashes, without duplicates',
      async (formats) => {
        const segments = runs(3, 6)
        const lab = await Lab.create(installation, segments, formats)

        // The same definition as the live version, so that every value can be compared.
        const same = await lab.publish(strict)
        const { id } = await lab.start('backfill', same)
        await until('the first segment', async () => (await lab.job(id)).segments.done > 0)
        await installation.kill('delivery')
        installation.spawn('delivery')
        await installation.kill('control')
        await installation.start('control')
        const job = await lab.untilFinished(id)
        expect(job).toMatchObject({ status: 'succeeded', segments: { total: segments, done: segments, skipped: 0, failed: 0 } })

        for (const read of [readWithDuckDb, readWithHyparquet]) {
          const live = byN(await read(lab.files(`views/${lab.name}/v1`)))
          expect(live).toHaveLength(segments * 5)
          expect(byN(await read(lab.files(`views/${lab.name}/v2`)))).toEqual(live)
        }
        const refused = byIndex(lab.dlq(`dlq/${lab.name}/v1`))
        expect(refused).toHaveLength(segments * 4)
        expect(byIndex(lab.dlq(`dlq/${lab.name}/v2`))).toEqual(refused.map((row) => ({ ...row, view_version: 2 })))
        const written = { accepted: segments * 5, rows: segments * 5, duplicates: 0 }
        const counters = { processed: segments * 10, ...written, dropped: segments, dlq: segments * 4, failed: 0 }
        expect(job.counters).toEqual(counters)
        const metrics = await lab.metrics(same)
        expect(metrics.all_time).toEqual({ ...counters, redriven: 0 })
        expect(metrics).toEqual(await lab.metrics(lab.first))
        for (const commit of (await installation.ok('GET', `/v1/endpoints/${lab.endpointId}/commits`)).items) {
          expect(Object.keys(commit.artifacts)).toEqual(
            expect.arrayContaining([`views/${lab.name}/v1`, `views/${lab.name}/v2`, `dlq/${lab.name}/v2`]),
          )
        }
        expect((await installation.ok('GET', `/v1/views/${same}/dlq-files`)).total).toBe(segments)

        const before = ['views', 'dlq', 'commits'].map((folder) => lab.objects(folder))
        expect(before[2]).toHaveLength(2 * segments)
        const again = await lab.untilFinished((await lab.start('backfill', same)).id)
        expect(again).toMatchObject({ status: 'succeeded', segments: { done: 0, skipped: segments }, counters: { processed: 0 } })
        expect(['views', 'dlq', 'commits'].map((folder) => lab.objects(folder))).toEqual(before)
      },
    )
  })

  test('of a view that makes many rows of one record count records and rows, and double none', async () => {
    const linesOf = () => Buffer.from(orders.map((order) => `${JSON.stringify(order)}\n`).join(''))
    const lab = await Lab.create(installation, 2, ['parquet', 'parquet_views'], { definition: itemsOf('INTEGER'), linesOf })
    const first = { processed: 6, accepted: 2, dropped: 2, dlq: 2, failed: 0, rows: 6, duplicates: 0 }
    expect((await lab.metrics(lab.first)).all_time).toEqual({ ...first, redriven: 0 })
    expect(lab.dlq(`dlq/${lab.name}/v1`)).toMatchObject(
      Array.from({ length: 2 }, () => ({ record_index: 1, item: '$.items[1]' })),
    )
    const [text, whole] = [await lab.publish(itemsOf('VARCHAR')), await lab.publish(itemsOf('VARCHAR'))]
    const redriven = await lab.untilFinished((await lab.start('redrive', text)).id)
    expect(redriven.counters).toEqual({ processed: 2, accepted: 2, dropped: 0, dlq: 0, failed: 0, rows: 4, duplicates: 0 })
    const rows = await readWithDuckDb(lab.files(`views/${lab.name}/v2/redrive-v1`))
    expect(rows.map(({ id, n }) => `${id} ${n}`)).toEqual(['2 4', '2 many', '2 4', '2 many'])
    const filled = await lab.untilFinished((await lab.start('backfill', whole)).id)
    expect(filled.counters).toEqual({ processed: 6, accepted: 4, dropped: 2, dlq: 0, failed: 0, rows: 10, duplicates: 0 })
    expect((await lab.metrics(whole)).all_time).toEqual({ ...filled.counters, redriven: 0 })
  })

  describe('redrive', () => {
    test('the repaired version takes the rejected rows with their envelope and index, without duplicates', async () => {
      const segments = 3
      const lab = await Lab.create(installation, segments, ['parquet', 'parquet_views'])
      const fixed = await lab.publish(lenient)
      const { id } = await lab.start('redrive', fixed)
      const job = await lab.untilFinished(id)
      expect(job).toMatchObject({ kind: 'redrive', from_version: 1, status: 'succeeded', segments: { done: segments } })
      const written = { accepted: segments, rows: segments, duplicates: 0 }
      expect(job.counters).toEqual({ processed: segments * 4, ...written, dropped: 0, dlq: segments * 3, failed: 0 })

      const kind = `${lab.name}/v2/redrive-v1`
      const [raw] = [await readWithDuckDb(lab.files('parquet'), 'payload, ingested_at')]
      const rows = byN(await readWithDuckDb(lab.files(`views/${kind}`)))
      expect(rows.map(({ n }) => Number(n))).toEqual([3, 13, 23])
      for (const { n, amount, at, protocol } of rows) {
        expect({ amount, protocol }).toEqual({ amount: String(3e9 + Number(n)), protocol: 'http' })
        const original = raw.find(({ payload }) => String(payload).startsWith(`{"n":${n},"amount":"3`))
        expect(at).toEqual(original?.['ingested_at'])
      }
      const refused = byIndex(lab.dlq(`dlq/${lab.name}/v1`))
      const left = refused.filter(({ record_index }) => record_index !== 3)
      const withoutMessage = ({ message, ...row }: Loose) => row
      expect(byIndex(lab.dlq(`dlq/${kind}`)).map(withoutMessage)).toEqual(
        left.map((row) => ({ ...withoutMessage(row), view_version: 2 })),
      )
      expect(lab.objects(`views/${lab.name}/v2`).every((name) => name.endsWith('.redrive-v1.parquet'))).toBe(true)

      // The query from the documentation.
      const query = documentedQuery(join(installation.buckets, lab.name), lab.endpointId, `views/${lab.name}/v2`)
      expect(await runInDuckDb(query)).toHaveLength(segments)

      // A segment that was re-driven has its output: neither another re-drive nor a backfill repeats it.
      for (const again of ['redrive', 'backfill'] as const) {
        const { id } = await lab.start(again, fixed)
        expect(await lab.untilFinished(id)).toMatchObject({ segments: { total: segments, done: 0, skipped: segments } })
      }
      expect(lab.objects(`views/${lab.name}/v2`)).toHaveLength(segments)

      const errors = { has_errors: false, error_rate_pct: 0, total_error_count_24h: 0 }
      expect(await lab.metrics(lab.first)).toMatchObject({ ...errors, all_time: { dlq: segments * 4, redriven: segments * 4 } })
      expect(await lab.metrics(fixed)).toMatchObject({
        has_errors: true,
        error_rate_pct: 75,
        all_time: { ...job.counters, redriven: 0 },
      })

      // The rows that are left can be re-driven by a version that accepts them.
      const last = await lab.publish({ columns: [{ name: 'n', type: 'INTEGER', path: '$.n' }] })
      const { id: next } = await lab.start('redrive', last)
      expect(await lab.untilFinished(next)).toMatchObject({
        from_version: 2,
        counters: { processed: segments * 3, accepted: segments, dlq: segments * 2 },
      })
      expect(byIndex(lab.dlq(`dlq/${lab.name}/v3/redrive-v2`)).map(({ record_index }) => record_index)).toEqual([
        6, 7, 6, 7, 6, 7,
      ])
    })
  })
})
