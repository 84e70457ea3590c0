/** Reads Parquet with two independent readers into comparable values. */
import { DuckDBInstance } from '@duckdb/node-api'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

export type Row = Readonly<Record<string, unknown>>

/** Returns the rows of all files in order: integers as decimal text, timestamps as ISO 8601 with microseconds, bytes as hex. */
export async function readWithDuckDb(paths: readonly string[], select = '*'): Promise<readonly Row[]> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const rows: Row[] = []
  for (const path of paths) {
    const reader = await connection.runAndReadAll(`SELECT ${select} FROM read_parquet('${path}', hive_partitioning = false)`)
    rows.push(...(reader.getRowObjects() as Row[]))
  }
  connection.closeSync()
  instance.closeSync()
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
