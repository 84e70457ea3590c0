/** Bare DuckDB on one core, doing the same work as Inlet for a segment. */
import { DuckDBInstance } from '@duckdb/node-api'
import { forEachRecord } from '#wal/records.ts'
import type { Workload } from './events.ts'
import { coreSeconds } from './measure.ts'

export type Floor = { readonly load: number; readonly extract: number; readonly raw: number }

export async function floor({ lines, definition }: Workload, directory: string): Promise<Floor> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  await connection.run('CREATE TABLE records (payload VARCHAR)')
  const load = await coreSeconds(async () => {
    const appender = await connection.createAppender('records')
    forEachRecord({ layout: 'lines', payload: lines }, (start, end) => {
      appender.appendVarchar(lines.toString('latin1', start, end))
      appender.endRow()
    })
    appender.closeSync()
  })
  // JSON pointers are the fastest kind of path in DuckDB.
  const paths = definition.columns.map(({ path }) => `'${path.slice(1).replaceAll('.', '/')}'`).join(', ')
  const columns = definition.columns
    .map(({ name, type }, index) => `TRY_CAST(v[${index + 1}] AS ${type}) AS "${name}"`)
    .join(', ')
  const extracted = `SELECT ${columns} FROM (SELECT json_extract_string(payload, [${paths}]) AS v FROM records)`
  const extract = await coreSeconds(async () => {
    await connection.run(`COPY (${extracted}) TO '${directory}/floor.parquet' (FORMAT parquet, COMPRESSION zstd)`)
  })
  const raw = await coreSeconds(async () => {
    await connection.run(`COPY records TO '${directory}/floor-raw.parquet' (FORMAT parquet, COMPRESSION zstd)`)
  })
  instance.closeSync()
  return { load, extract, raw }
}
