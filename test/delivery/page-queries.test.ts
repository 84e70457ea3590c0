/**
 * Runs every query over delivered files that a page or an example shows, as it stands there, before, during and after a compaction and a removal.
 *
 * Law: the folder of a view, and that of raw Parquet, has each row once at every stage of a compaction. A removal takes rows from it, and nothing
 * ever doubles them. Whoever follows markers reads each row once at every stage.
 */
import { globSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import type { CompactionUnit } from '#model/job-protocol.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import { aCompactionUnit, compact, removeSources } from '../support/compaction.ts'
import { aBoundView, aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { readMarkers } from '../support/markers.ts'
import { runInDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')
const pages = ['README.md', 'docs/**/*.md', 'examples/**/*', 'deploy/**/*', 'console/README.md']
const readsParquet = /read_parquet\(|read\.parquet\(|read_table\(|scan_parquet\(|, Parquet\)/

/** By page and language, the blocks of code that read Parquet. A file that is no page is one block. */
const blocks = new Map(
  pages
    .flatMap((pattern) => globSync(pattern, { cwd: root, exclude: (path) => /node_modules|decisions/.test(path) }))
    .filter((path) => /\.(md|py|go|sql|ts|sh|yaml|yml)$/.test(path))
    .flatMap((path): (readonly [string, string])[] => {
      const text = readFileSync(join(root, path), 'utf8')
      if (!path.endsWith('.md')) return [[path, text]]
      return [...text.matchAll(/^ *```(.*)\n([\s\S]*?)^ *```$/gm)].map(([, name = '', code = '']) => [`${path} ${name}`, code])
    })
    .filter(([, code]) => readsParquet.test(code)),
)
const code = (name: string) => must(blocks.get(name), name)

/** `test/engines/examples.test.ts` runs these at the same stages. */
const inEngines = ['spark', 'pyarrow', 'polars', 'clickhouse'].map((engine) => `docs/readers.md python ${engine}`)

/** Its table is another one: `readers.test.ts` runs it. */
const inReaders = ['docs/readers.md sql partitions']

/** Expected reads of a query, and how to get its number of rows and their sum, which tells which rows they are. */
const readers: Readonly<Record<string, { readonly reads: 'folder' | 'markers'; readonly sql: readonly string[] }>> = {
  'README.md sql': {
    reads: 'folder',
    sql: [`SELECT "count_star()" AS rows, "sum(amount)" AS sum FROM (${code('README.md sql').trim().replace(/;$/, '')})`],
  },
  'docs/senders.md python': { reads: 'folder', sql: [inPython(code('docs/senders.md python'))] },
  'docs/readers.md sql folder': {
    reads: 'folder',
    sql: [`SELECT count(*) AS rows, sum(amount) AS sum FROM (${code('docs/readers.md sql folder').trim().replace(/;$/, '')})`],
  },
  'docs/readers.md sql duckdb': {
    reads: 'markers',
    sql: [
      code('docs/readers.md sql duckdb').replace(/SELECT \* (FROM read_parquet[^;]*);/, ''),
      `SELECT count(*) AS rows, sum(amount) AS sum FROM read_parquet(getvariable('files'))`,
    ],
  },
  'docs/readers.md sql duckdb-incremental': {
    reads: 'markers',
    sql: [code('docs/readers.md sql duckdb-incremental'), 'SELECT count(*) AS rows, sum(amount) AS sum FROM orders'],
  },
}

/** Returns the statement in the example for webhooks, whose glob is in a comment. */
function inPython(text: string): string {
  const glob = must(/# FILES: such as (.+)$/m.exec(text)?.[1], 'the files')
  const statement = must(/duckdb\.sql\(f"([^"]*)"\)/.exec(text)?.[1], 'a statement')
  const rows = statement.replace("{os.environ['FILES']}", glob.replace('bucket/<prefix>/<endpoint id>', 'my-bucket/in/let/*'))
  return `SELECT count(*) AS rows, sum((payload->>'$.amount')::BIGINT) AS sum FROM (${rows})`
}

test('every block of code that reads Parquet is run', () => {
  expect([...blocks.keys()].toSorted()).toEqual([...Object.keys(readers), ...inEngines, ...inReaders].toSorted())
})

describe('the queries of the pages', () => {
  let node: DeliveryNode
  let bucket = ''
  const destination = { ...aDestination('my-bucket'), prefix: 'in/let' }
  const endpointId = must(
    /in\/let\/([0-9a-f-]{36})/.exec(code('docs/readers.md sql duckdb'))?.[1],
    'the endpoint of the examples',
  )
  const kinds = ['parquet', 'views/events/v1', 'views/orders/v1']
  const aView = (name: string, column: string, type: string) => {
    const amount = { name: 'amount', type: 'DOUBLE', path: '$.amount' }
    return aBoundView({ name, definition: { columns: [{ name: column, type, path: `$.${column}` }, amount] } })
  }

  beforeAll(async () => {
    const views = [aView('orders', 'id', 'BIGINT'), aView('events', 'event', 'VARCHAR')]
    node = await DeliveryNode.create(
      anEndpointTo(destination, { id: endpointId, views, output_formats: ['parquet', 'parquet_views'] }),
    )
    bucket = join(node.config.paths.buckets, 'my-bucket')
    await node.start()
  })
  afterAll(() => node[Symbol.asyncDispose]())

  /** Delivers a segment with one record for each amount. Amounts are powers of two, so that their sum tells them. */
  async function deliver(...amounts: readonly number[]): Promise<void> {
    const wanted = node.commits.length + amounts.length
    const envelope = encodeEnvelope({ protocol: 'http', headers: { 'x-hub-signature-256': 'sha256=00' } })
    await node.sealAll(amounts.map((amount) => [endpointId, `{"id":${amount},"event":"order","amount":${amount}}`, envelope]))
    await until('the commits', () => node.commits.length === wanted)
  }

  async function run(statements: readonly string[]): Promise<{ readonly rows: number; readonly sum: number }> {
    const local = (sql: string) =>
      sql.replaceAll('s3://my-bucket', bucket).replaceAll('data/buckets/local', join(bucket, 'in/let'))
    const [found] = await runInDuckDb(statements.map(local))
    return { rows: Number(found?.['rows']), sum: Number(found?.['sum']) }
  }

  const sumOf = (amounts: readonly number[]) => ({ rows: amounts.length, sum: amounts.reduce((sum, amount) => sum + amount, 0) })
  async function expectRows({ folder, markers }: { readonly folder: readonly number[]; readonly markers: readonly number[] }) {
    const found: Record<string, unknown> = {}
    const wanted: Record<string, unknown> = {}
    for (const [name, { reads, sql }] of Object.entries(readers)) {
      found[name] = await run(sql)
      wanted[name] = sumOf(reads === 'folder' ? folder : markers)
    }
    expect(found).toEqual(wanted)
  }

  /** Runs the queries of folders over the folders of merged files instead, or over both. */
  const merged = (sql: string) => sql.replace(/\/(views|parquet)\/(?=.*\.parquet)/, '/compacted/$1/')
  async function expectMerged(amounts: readonly number[]) {
    for (const { reads, sql } of Object.values(readers))
      if (reads === 'folder') expect(await run(sql.map(merged))).toEqual(sumOf(amounts))
  }

  test('read each row once at every stage of a compaction and a removal', async () => {
    await deliver(1, 2)
    await expectRows({ folder: [1, 2], markers: [1, 2] })

    const found = readMarkers(bucket, 'in/let', endpointId)
    const units = kinds.map((kind): CompactionUnit => aCompactionUnit(found, { endpointId, kind, target: destination }))
    node.stores.fault = (key) => (/commits\/.*compact-/.test(key) ? 'not stored' : undefined)
    for (const unit of units) expect(await compact(unit, node.stores)).toMatchObject({ outcome: 'retry' })
    await expectRows({ folder: [1, 2], markers: [1, 2] })

    node.stores.fault = () => undefined
    const ended = await Promise.all(units.map(async (unit) => ({ unit, end: await compact(unit, node.stores) })))
    await expectRows({ folder: [1, 2], markers: [1, 2] })
    await expectMerged([1, 2])

    await deliver(4)
    await expectRows({ folder: [1, 2, 4], markers: [1, 2, 4] })
    // A removal that ended in the middle.
    for (const kind of kinds) await rm(join(bucket, must(found[0]?.artifacts[kind], kind).key))
    await expectRows({ folder: [2, 4], markers: [1, 2, 4] })
    for (const { unit, end } of ended) expect(await removeSources(unit, end, node.stores)).toEqual({ outcome: 'removed' })
    await expectRows({ folder: [4], markers: [1, 2, 4] })
    await expectMerged([1, 2])
  })
})
