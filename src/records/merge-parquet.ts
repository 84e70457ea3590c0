/**
 * Writes the rows of several Parquet files to one.
 *
 * Law: rows stay in the order of the files and of the rows in each, so that the position of a row tells which file it is from. Files of
 * different schemas are not merged: DuckDB would convert values.
 */
import { dirname } from 'node:path'
import { Database } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { buildLimits } from './limits.ts'
import { copyToParquetSql, parquetRowsSql } from './parquet-writer.ts'
import { fallBackIfOutOfMemory } from './pieces.ts'

export type MergeOptions = {
  /** In the order of the rows, with the number of rows that each must have. */
  readonly sources: readonly { readonly path: string; readonly rows: number }[]
  /** The new file. */
  readonly path: string
  readonly memoryBytes: number
  readonly signal: AbortSignal
}

/** Returns the number of rows. Throws for files that cannot be merged. */
export async function mergeParquet({ sources, path, memoryBytes, signal }: MergeOptions): Promise<number> {
  const files = sources.map((source) => source.path)
  const directories = [...new Set([path, ...files].map((file) => dirname(file)))]
  const database = await Database.open({ directories, memoryBytes })
  try {
    const connection = await database.connect()
    const statement = { signal, timeoutMs: buildLimits.statementTimeoutMs }
    const list = `[${files.map(quoteLiteral).join(', ')}]`
    const counts = await connection.query(`SELECT file_name, num_rows FROM parquet_file_metadata(${list})`, statement)
    const rowsOf = new Map(counts.rows.map(([file, rows]) => [String(file), Number(rows)]))
    for (const { path: file, rows } of sources)
      if (rowsOf.get(file) !== rows) throw new Error(`a file has ${rowsOf.get(file)} rows, and its marker says ${rows}`)
    const shapes = await connection.query(
      `SELECT DISTINCT shape FROM (
         SELECT string_agg(concat_ws(' ', name, type, type_length, num_children, converted_type, scale, precision, logical_type), ', ') AS shape
         FROM parquet_schema(${list}) GROUP BY file_name) LIMIT 2`,
      statement,
    )
    if (shapes.rows.length > 1)
      throw new Error(
        'the files have different Parquet schemas, because different releases wrote them: they are left as they are',
      )
    // The definition of the view is not known here.
    const filters = await connection.query(`SELECT count(bloom_filter_offset) > 0 FROM parquet_metadata(${list})`, statement)
    const hasFilters = filters.rows[0]?.[0] === true
    const copy = async (rowGroupBytes: number): Promise<number> => {
      const { rows } = await connection.query(copyToParquetSql(parquetRowsSql(files), path, rowGroupBytes, hasFilters), statement)
      return Number(rows[0]?.[0])
    }
    const [largest = 0, ...smaller] = buildLimits.rowGroupBytesCompacted
    return await smaller.reduce(
      (attempt, rowGroupBytes) => () => fallBackIfOutOfMemory(attempt, () => copy(rowGroupBytes)),
      () => copy(largest),
    )()
  } finally {
    database.close()
  }
}
