/** Engines read the folders of a view with partition_by, whatever its values are. INLET_TEST_ENGINES is the folder in which they are installed. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { quoteLiteral } from '#duckdb/quote.ts'
import { nullFolder, objectKey } from '#model/artifact.ts'
import { newId } from '#model/id.ts'
import { queryRows } from '../support/parquet.ts'

const installed = process.env['INLET_TEST_ENGINES'] ?? ''
const why = installed === '' ? ' (skipped: INLET_TEST_ENGINES is not set, see docs/contributing/components.md)' : ''
const run = promisify(execFile)

const values = ['DE', 'Äland', 'a b', 'a/b', 'x=y', '50%', "O'Brien", '🙂', '..', '12', null]

/** How ClickHouse shows a value: as the folder is written. */
const asWritten = (value: string | null) =>
  value === null ? nullFolder : value.replaceAll(/[ /=%']/g, (each) => encodeURIComponent(each).replace("'", '%27'))

const asItIs = (value: string | null) => value

const engines = [
  ['duckdb', 'python', asItIs],
  ['pyarrow', 'python', asItIs],
  ['polars', 'python', asItIs],
  ['datafusion', 'python', (value: string | null) => value ?? nullFolder],
  ['clickhouse', 'python', asWritten],
  ['spark', 'spark-3.5', asItIs],
  ['spark', 'spark-4', asItIs],
] as const

describe.skipIf(installed === '')(`folders${why}`, () => {
  let directory = ''
  let folder = ''

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'inlet-folders-'))
    const endpointId = newId()
    const segment = { endpointId, nodeId: newId(), incarnation: 'log', seq: 7, sealedAtMicros: Date.UTC(2026, 10, 20) * 1000 }
    folder = join(directory, endpointId, 'views/orders/v1')
    for (const [id, value] of values.entries()) {
      const partition = [{ column: 'country', value }]
      const path = join(directory, objectKey('', segment, { type: 'view', name: 'orders', version: 1, partition }))
      await mkdir(dirname(path), { recursive: true })
      await queryRows(`COPY (SELECT ${id} AS id) TO ${quoteLiteral(path)} (FORMAT parquet)`)
    }
  })
  afterAll(() => rm(directory, { recursive: true }))

  test.each(engines)('%s in %s reads the values', { timeout: 120_000 }, async (reader, environment, shown) => {
    const python = join(installed, environment, 'bin/python')
    if (!existsSync(python)) return expect(environment).not.toBe('python')
    const { stdout } = await run(python, [join(import.meta.dirname, 'folders.py'), reader, folder], { maxBuffer: 16e6 })
    const expected = values.map((value, id) => [id, shown(value)])
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toEqual(expected)
  })
})
