/**
 * Engines that people use read files with every type, and each value is compared. INLET_TEST_ENGINES is the folder in which they are installed:
 * docs/contributing/components.md says how. One that is missing there is skipped.
 */
import { execFile } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asked, cases, expected, writeFiles } from './files.ts'

const folder = process.env['INLET_TEST_ENGINES'] ?? ''

/** How an engine differs: none changes a value. */
type Engine = {
  readonly title: string
  readonly reader: string
  readonly environment: string
  readonly module: string
  /** Forms that a column asked for, which the engine refuses or reads as another type. */
  readonly refuses?: readonly string[]
  readonly readsOtherwise?: readonly string[]
  /** Has no NULL in place of a list: it is empty. */
  readonly hasNoNullLists?: true
}

const engines: readonly Engine[] = [
  { title: 'DuckDB', reader: 'duckdb', environment: 'python', module: 'duckdb' },
  { title: 'Spark 3.5', reader: 'spark', environment: 'spark-3.5', module: 'pyspark', refuses: ['uuid', 'time'] },
  { title: 'Spark 4', reader: 'spark', environment: 'spark-4', module: 'pyspark', refuses: ['uuid', 'time'] },
  { title: 'Polars', reader: 'polars', environment: 'python', module: 'polars', readsOtherwise: ['uuid', 'json'] },
  { title: 'pandas', reader: 'pandas', environment: 'python', module: 'pandas' },
  { title: 'pyarrow', reader: 'pyarrow', environment: 'python', module: 'pyarrow' },
  { title: 'DataFusion', reader: 'datafusion', environment: 'python', module: 'datafusion', readsOtherwise: ['uuid'] },
  {
    title: 'ClickHouse',
    reader: 'clickhouse',
    environment: 'python',
    module: 'chdb',
    hasNoNullLists: true,
    readsOtherwise: ['time', 'instant'],
  },
]

type Read =
  | { readonly types: readonly string[]; readonly rows: readonly Record<string, unknown>[]; readonly error?: undefined }
  | { readonly error: string }

const run = promisify(execFile)
let files: Awaited<ReturnType<typeof writeFiles>>
beforeAll(async () => {
  if (folder !== '') files = await writeFiles()
})
afterAll(() => (folder === '' ? undefined : rm(files.directory, { recursive: true })))

for (const engine of engines) {
  const python = join(folder, engine.environment, 'bin', 'python')
  const installed =
    folder !== '' &&
    existsSync(python) &&
    globSync(join(folder, engine.environment, 'lib/python*/site-packages', engine.module)).length > 0
  const missing =
    folder === '' ? 'INLET_TEST_ENGINES is not set' : `${engine.module} is not installed in ${join(folder, engine.environment)}`
  const title = installed ? engine.title : `${engine.title} (skipped: ${missing}, see docs/contributing/components.md)`
  describe.skipIf(!installed)(title, () => testEngine(engine, python))
}

function testEngine(engine: Engine, python: string): void {
  let all: Read
  let forms: readonly Read[]

  beforeAll(async () => {
    const program = join(import.meta.dirname, 'read.py')
    const env = { ...process.env, TZ: 'UTC', PYTHONWARNINGS: 'ignore' }
    const { stdout } = await run(python, [program, engine.reader, files.all, ...files.forms], { env, maxBuffer: 64e6 })
    ;[all = { error: 'nothing was read' }, ...forms] = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Read[]
  }, 150_000)

  const rowsOf = (read: Read) => {
    if (read.error !== undefined) throw new Error(read.error)
    return read.rows
  }

  test.each(cases.map(([name, type], index) => ({ name, type, index })))('reads $type ($name)', ({ name, type }) => {
    const values = expected.map((row) => (type.endsWith('[]') && engine.hasNoNullLists === true ? (row[name] ?? []) : row[name]))
    expect(rowsOf(all).map((row) => row[name])).toEqual(values)
  })

  test.each(asked.map(({ column }, index) => ({ ...column, index })))('$type as $parquet', ({ name, index }) => {
    const read = forms[index] ?? { error: 'nothing was read' }
    if (engine.refuses?.includes(name) === true) expect(read.error).toBeDefined()
    else if (engine.readsOtherwise?.includes(name) === true) expect(rowsOf(read)[0]?.[name]).not.toEqual(askedValue(name))
    else expect(rowsOf(read)[0]?.[name]).toEqual(askedValue(name))
  })

  test('has the types that docs/readers.md names', async () => {
    const docs = await readFile(new URL('../../docs/readers.md', import.meta.url), 'utf8')
    const [head = [], , ...rows] = (docs.split('## Types in engines')[1] ?? '')
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim().replaceAll('`', '')),
      )
    const column = head.indexOf(engine.title.replace(/ .*/, ''))
    if (column === -1) return
    const documented = Object.fromEntries(rows.map((cells) => [cells[0], cells[column]]))
    expect(rows.length).toBeGreaterThan(20)
    const types = all.error === undefined ? all.types : []
    const seen = cases.flatMap(([, type], index) => (type in documented ? [[type, types[index]]] : []))
    expect(Object.fromEntries(seen)).toEqual(documented)
  })
}

function askedValue(name: string): unknown {
  const value = expected[0]?.[name]
  return name === 'instant' ? String(value).replace('Z', '') : value
}
