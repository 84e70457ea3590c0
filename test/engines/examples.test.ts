/** Runs the examples for Python in docs/readers.md, in a bucket that also has uncommitted files, before and after a compaction and a removal. INLET_TEST_ENGINES is where engines are installed. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { aCompactionUnit, compact, removeSources } from '../support/compaction.ts'
import { aBoundView, aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { readMarkers } from '../support/markers.ts'
import { until } from '../support/until.ts'

const folder = process.env['INLET_TEST_ENGINES'] ?? ''
const python = (environment: string) => join(folder, environment, 'bin/python')
const docs = await readFile(new URL('../../docs/readers.md', import.meta.url), 'utf8')
const run = promisify(execFile)

const definition = {
  columns: [
    { name: 'id', type: 'BIGINT', path: '$.id', required: true },
    { name: 'amount', type: 'DOUBLE', path: '$.amount' },
  ],
}

/** The example, its environment, and Python for its rows. */
const examples = [
  ['pyarrow', 'python', 'orders.to_pylist()'],
  ['pyarrow', 'python', 'frame.to_dict("records")'],
  ['polars', 'python', 'orders.to_dicts()'],
  ['clickhouse', 'python', 'orders.to_dict("records")'],
  ['spark', 'spark-3.5', '[row.asDict() for row in orders.select("id", "amount").collect()]'],
  ['spark', 'spark-4', '[row.asDict() for row in orders.select("id", "amount").collect()]'],
] as const

const why = folder === '' ? ' (skipped: INLET_TEST_ENGINES is not set, see docs/contributing/components.md)' : ''

describe.skipIf(folder === '')(`the examples for Python${why}`, () => {
  let node: DeliveryNode
  let bucket = ''

  const destination = { ...aDestination('my-bucket'), prefix: 'in/let' }
  const endpointId = must(/in\/let\/([0-9a-f-]{36})/.exec(docs)?.[1], 'the endpoint of the examples')
  const kind = 'views/orders/v1'

  beforeAll(async () => {
    const views = [aBoundView({ name: 'orders', definition })]
    node = await DeliveryNode.create(anEndpointTo(destination, { id: endpointId, views, output_formats: ['parquet_views'] }))
    bucket = join(node.config.paths.buckets, 'my-bucket')
    await node.start()
    await deliver('{"id":1,"amount":1.5}\n{"id":2,"amount":2.5}', '{"id":3,"amount":3.5}')
    const { key } = must(node.commits[0]?.artifacts[kind], 'a file of the view')
    await copyFile(join(bucket, key), join(bucket, key.replace(/\d{12}\.parquet$/, '999999999999.parquet')))
  })
  afterAll(() => node[Symbol.asyncDispose]())

  async function deliver(...bodies: readonly string[]): Promise<void> {
    const wanted = node.commits.length + bodies.length
    await node.seal(endpointId, ...bodies)
    await until('the commits', () => node.commits.length === wanted)
  }

  const merge = async () => {
    const unit = aCompactionUnit(readMarkers(bucket, 'in/let', endpointId), { endpointId, kind, target: destination })
    return { unit, compacted: await compact(unit, node.stores) }
  }
  let merged: Awaited<ReturnType<typeof merge>>

  /** One after the other, with the rows that there are then. */
  const stages: readonly (readonly [title: string, rows: number, step: () => Promise<void>])[] = [
    ['as delivered', 3, async () => undefined],
    [
      'merged',
      3,
      async () => {
        merged = await merge()
      },
    ],
    [
      'merged, and the old files removed',
      4,
      async () => {
        expect(await removeSources(merged.unit, merged.compacted, node.stores)).toEqual({ outcome: 'removed' })
        await deliver('{"id":4,"amount":4.5}')
      },
    ],
  ]

  describe.each(stages)('%s', (_, count, step) => {
    beforeAll(step)

    for (const [name, environment, rows] of examples) {
      test.skipIf(!existsSync(python(environment)))(
        `${name} reads committed files only: ${rows} in ${environment}`,
        { timeout: 120_000 },
        async () => {
          const code = `${name === 'spark' ? '' : example('files')}\n${example(name)}\nimport json\nprint(json.dumps(sorted(${rows}, key=lambda row: row["id"])))`
          const local = code
            .replaceAll('s3://my-bucket', bucket)
            .replaceAll('s3a://my-bucket', bucket)
            .replaceAll("s3('https://my-bucket.s3.amazonaws.com", `file('${bucket}`)
          const { stdout } = await run(python(environment), ['-c', local], {
            env: { ...process.env, SPARK_LOCAL_IP: '127.0.0.1' },
          })
          const expected = Array.from({ length: count }, (_, at) => ({ id: at + 1, amount: at + 1.5 }))
          expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toEqual(expected)
        },
      )
    }
  })
})

function example(name: string): string {
  const [, code] = new RegExp(`^\`\`\`python ${name}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(docs) ?? []
  return must(code, `an example for ${name}`)
}
