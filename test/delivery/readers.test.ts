/** Runs the examples of docs/readers.md in a bucket that also has uncommitted files. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { aCompactionUnit, compact, removeSources } from '../support/compaction.ts'
import { aBoundView, aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { artifactPaths, readMarkers } from '../support/markers.ts'
import { readWithDuckDb, runInDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const docs = await readFile(new URL('../../docs/readers.md', import.meta.url), 'utf8')
const endpointId = must(/in\/let\/([0-9a-f-]{36})/.exec(docs)?.[1], 'the endpoint of the examples')
const definition = {
  columns: [
    { name: 'id', type: 'BIGINT', path: '$.id', required: true },
    { name: 'amount', type: 'DOUBLE', path: '$.amount' },
  ],
}
const byCountry = {
  columns: [
    { name: 'id', type: 'BIGINT', path: '$.id' },
    { name: 'country', type: 'VARCHAR', value: "CASE WHEN id % 2 = 0 THEN 'DE' ELSE 'FR' END" },
  ],
  partition_by: ['country'],
}
const orders = (first: number) => [first, first + 1].map((id) => `{"id":${id},"amount":${id}.5}`).join('\n')
const rows = (...ids: readonly number[]) => ids.map((id) => ({ id: String(id), amount: id + 0.5 }))

const hasJq = (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, 'jq')))

function example(language: string): string {
  const [, code] = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(docs) ?? []
  return must(code, `an example in ${language}`)
}

describe('the examples of docs/readers.md', () => {
  let node: DeliveryNode
  let bucket = ''
  let directory = ''
  const destination = { ...aDestination('my-bucket'), prefix: 'in/let' }

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'inlet-readers-'))
    const views = [aBoundView({ name: 'orders', definition }), aBoundView({ name: 'by_country', definition: byCountry })]
    node = await DeliveryNode.create(
      anEndpointTo(destination, { id: endpointId, views, output_formats: ['parquet', 'parquet_views'] }),
    )
    bucket = join(node.config.paths.buckets, 'my-bucket')
    await node.start()
    await deliver(orders(1), orders(3))
    await deliverHalf()
  })
  afterAll(async () => {
    await node[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  async function deliver(...bodies: readonly string[]): Promise<void> {
    const wanted = node.commits.length + bodies.length
    await node.seal(endpointId, ...bodies)
    await until('the commits', () => node.commits.length === wanted)
  }

  /** Simulates a delivery that crashed before its marker: copies a file to the key of another segment. */
  async function deliverHalf(): Promise<void> {
    const { key } = must(node.commits[0]?.artifacts['views/orders/v1'], 'a file of the view')
    await copyFile(join(bucket, key), join(bucket, key.replace(/\d{12}\.parquet$/, '999999999999.parquet')))
    await writeFile(join(bucket, dirname(key), 'cut.parquet'), 'PAR1 and no more')
  }

  const run = (sql: string, path?: string) => runInDuckDb([sql.replaceAll('s3://my-bucket', bucket)], path)

  const text = (found: readonly Readonly<Record<string, unknown>>[]) =>
    found.map(({ id, amount }) => ({ id: String(id), amount })).toSorted((a, b) => Number(a.id) - Number(b.id))

  test('DuckDB reads committed files only', async () => {
    expect(text(await run(example('sql duckdb')))).toEqual(rows(1, 2, 3, 4))
  })

  test('DuckDB reads one partition of a folder', async () => {
    expect(await run(example('sql partitions'))).toEqual([{ country: 'DE', orders: 2n }])
  })

  test('DuckDB reads each row once, in any number of runs', async () => {
    const database = join(directory, 'orders.db')
    const incremental = example('sql duckdb-incremental')
    await run(incremental, database)
    expect(text(await run('SELECT * FROM orders', database))).toEqual(rows(1, 2, 3, 4))
    await expect(run(incremental, database)).rejects.toThrow(/read_parquet|file/i)
    await deliver(orders(5))
    await run(incremental, database)
    expect(text(await run('SELECT * FROM orders', database))).toEqual(rows(1, 2, 3, 4, 5, 6))
  })

  test.skipIf(!hasJq)('a shell script takes each file once, in any number of runs (skipped without jq)', async () => {
    const inbox = await shell('shell')
    const before = await inbox()
    expect(before).toEqual(rows(...before.map(({ id }) => Number(id))))
    expect(before.length).toBeGreaterThanOrEqual(4)
    expect(await inbox()).toEqual(before)
    await deliver(orders(7))
    expect(await inbox()).toEqual([...before, ...rows(7, 8)])
    // A run that was interrupted before it recorded its progress.
    const [marker] = await readdir(join(directory, 'shell/done'))
    await rm(join(directory, 'shell/done', must(marker, 'what is done')))
    expect(await inbox()).toEqual([...before, ...rows(7, 8)])
  })

  test('after a compaction, whoever has read all, some or nothing gets exactly the rest, also once the old files are gone', async () => {
    const incremental = example('sql duckdb-incremental')
    const [all, some] = [join(directory, 'all.db'), join(directory, 'some.db')]
    await run(incremental, some)
    await deliver(orders(9), orders(11))
    await run(incremental, all)
    const script = hasJq ? await shell('compacted') : undefined
    const taken = await script?.()
    const before = text(await run('SELECT * FROM orders', all))
    expect(text(await run('SELECT * FROM orders', some)).length).toBe(before.length - 4)

    const markers = readMarkers(bucket, 'in/let', endpointId)
    const unit = aCompactionUnit(markers, { endpointId, kind: 'views/orders/v1', target: destination })
    const compacted = await compact(unit, node.stores)
    expect(compacted).toMatchObject({ outcome: 'compacted', file: { rows: before.length } })
    // During the grace period there are two copies of each row.
    expect(text(await run(example('sql duckdb')))).toEqual(before)
    const old = artifactPaths(bucket, markers, 'views/orders/v1')
    // A removal that ended in the middle.
    await rm(must(old[0], 'an old file'))
    expect(text(await run(example('sql duckdb')))).toEqual(before)
    expect(await removeSources(unit, compacted, node.stores)).toEqual({ outcome: 'removed' })
    expect(old.filter((path) => existsSync(path))).toEqual([])
    await deliver(orders(13))

    const everything = [...before, ...rows(13, 14)]
    expect(text(await run(example('sql duckdb')))).toEqual(everything)
    for (const database of [all, some, join(directory, 'none.db')]) {
      await run(incremental, database)
      expect(text(await run('SELECT * FROM orders', database))).toEqual(everything)
    }
    if (script === undefined) return
    expect(await script()).toEqual([...(taken ?? []), ...rows(13, 14)])
    const fresh = await shell('fresh')
    expect(await fresh()).toEqual(everything)
    expect(await fresh()).toEqual(everything)
  })

  /** Puts the script into its own directory, with an `aws` that copies from the directory bucket. Each call runs it and reads its inbox. */
  async function shell(name: string) {
    const home = join(directory, name)
    const script = join(home, 'read.sh')
    await mkdir(join(home, 'bin'), { recursive: true })
    await writeFile(script, example('sh'))
    const aws = join(home, 'bin/aws')
    await writeFile(aws, awsStandIn(bucket))
    await chmod(aws, 0o755)
    const environment = { ...process.env, PATH: `${dirname(aws)}:${process.env['PATH']}` }
    return async () => {
      execFileSync('bash', [script], { cwd: home, env: environment, stdio: ['ignore', 'ignore', 'inherit'] })
      const files = (await readdir(join(home, 'inbox'))).map((file) => join(home, 'inbox', file))
      return text(await readWithDuckDb(files))
    }
  }
})

/** Stands in for `aws s3 sync|cp --only-show-errors FROM TO`, from one bucket. */
function awsStandIn(bucket: string): string {
  return `#!/bin/sh
from=$(echo "$4" | sed 's|^s3://my-bucket|${bucket}|')
case $2 in
  sync) cp -R "$from." "$5" ;;
  cp) cp "$from" "$5" ;;
esac
`
}
