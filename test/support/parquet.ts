/** Reads Parquet with two independent readers into comparable values. */
import { DuckDBInstance, type DuckDBResultReader } from '@duckdb/node-api'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

export type Row = Readonly<Record<string, unknown>>

/** A value in DuckDB's JSON form: numbers beyond 2^53 and all other types are text. */
type Cell = string | number | boolean | null | readonly Cell[] | { readonly [key: string]: Cell }
type Table = {
  readonly columns: readonly string[]
  readonly types: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
}

/** The DuckDB that reads for a worker. Starting one takes longer than most reads. */
let reader: Promise<DuckDBInstance> | undefined

async function openReader(): Promise<DuckDBInstance> {
  // Tests replace files between reads.
  const instance = await DuckDBInstance.create(':memory:', { threads: '1', enable_external_file_cache: 'false' })
  const connection = await instance.connect()
  await connection.run("SET GLOBAL TimeZone = 'UTC'")
  connection.closeSync()
  return instance
}

async function read(sql: string): Promise<DuckDBResultReader> {
  reader ??= openReader()
  const connection = await (await reader).connect()
  try {
    return await connection.runAndReadAll(sql)
  } finally {
    connection.closeSync()
  }
}

/** Runs one statement. For small results. */
export async function queryRows(sql: string): Promise<Table> {
  const result = await read(sql)
  return {
    columns: result.columnNames(),
    types: result.columnTypes().map(String),
    rows: result.getRowsJson() as unknown as Table['rows'],
  }
}

/** Runs statements in a database of their own, which may be a file. Returns the rows of the last one. */
export async function runInDuckDb(statements: readonly string[], path = ':memory:'): Promise<readonly Row[]> {
  const instance = await DuckDBInstance.create(path)
  const connection = await instance.connect()
  try {
    for (const sql of statements.slice(0, -1)) await connection.run(sql)
    return (await connection.runAndReadAll(statements.at(-1) ?? '')).getRowObjects() as Row[]
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** Returns the rows of all files in order: integers as decimal text, timestamps as ISO 8601 with microseconds, bytes as hex. */
export async function readWithDuckDb(paths: readonly string[], select = '*'): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const path of paths) {
    const result = await read(`SELECT ${select} FROM read_parquet('${path}', hive_partitioning = false)`)
    rows.push(...(result.getRowObjects() as Row[]))
  }
  return rows.map(normalized)
}

export async function readWithHyparquet(paths: readonly string[]): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const path of paths) {
    rows.push(...(await parquetReadObjects({ file: await asyncBufferFromFile(path), compressors, utf8: false })))
  }
  return rows.map(normalized)
}

function normalized(row: Row): Row {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, normal(value)]))
}

function normal(value: unknown): unknown {
  if (value === null || value === undefined) return null
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'number') return Number.isInteger(value) ? value.toString() : value
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return value.map(normal)
  if (typeof value === 'object') {
    // DuckDB's own value classes.
    if ('micros' in value && typeof value.micros === 'bigint') return new Date(Number(value.micros / 1000n)).toISOString()
    if ('items' in value && Array.isArray(value.items)) return value.items.map(normal)
    if ('bytes' in value && value.bytes instanceof Uint8Array) return Buffer.from(value.bytes).toString('hex')
    if ('hugeint' in value) return String(value)
  }
  return value
}
