/** Copies some rows of a Parquet file, which were a file of their own before a compaction. */
import { dirname } from 'node:path'
import { Database } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { buildLimits, rowGroupBytesWithin } from './limits.ts'
import { copyToParquetSql } from './parquet-writer.ts'

export type ExtractOptions = {
  readonly from: string
  readonly to: string
  /** Counted from 0. */
  readonly firstRow: number
  readonly rows: number
  readonly memoryBytes: number
  readonly signal: AbortSignal
}

/** Throws if the file has fewer rows. */
export async function extractRows({ from, to, firstRow, rows, memoryBytes, signal }: ExtractOptions): Promise<void> {
  const database = await Database.open({ directories: [...new Set([dirname(from), dirname(to)])], memoryBytes })
  try {
    const connection = await database.connect()
    const select = `SELECT * EXCLUDE (file_row_number)
      FROM read_parquet(${quoteLiteral(from)}, hive_partitioning = false, file_row_number = true)
      WHERE file_row_number BETWEEN ${firstRow} AND ${firstRow + rows - 1}`
    const statement = { signal, timeoutMs: buildLimits.statementTimeoutMs }
    const copied = await connection.query(copyToParquetSql(select, to, rowGroupBytesWithin(memoryBytes)), statement)
    const count = Number(copied.rows[0]?.[0])
    if (count !== rows) throw new Error(`the merged file has ${count} of ${rows} rows from row ${firstRow} on`)
  } finally {
    database.close()
  }
}
