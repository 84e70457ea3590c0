import { dirname } from 'node:path'
import { queryParquet } from '#duckdb/query-parquet.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { AppError } from '#errors.ts'
import { previewLimits } from '#model/limits.ts'

/** Samples records from the whole of a raw Parquet file, the same each time, in order. Throws validation_error if it cannot be read. */
export async function samplesOfParquet(path: string): Promise<readonly string[]> {
  const fitting = `SELECT payload, record_index FROM read_parquet(${quoteLiteral(path)}, hive_partitioning = false)
    WHERE strlen(payload) <= ${previewLimits.sampleBytesMax}`
  const sampled = `SELECT * FROM (${fitting}) USING SAMPLE reservoir(${previewLimits.samplesMax} ROWS) REPEATABLE (1)`
  try {
    const { rows } = await queryParquet({
      directories: [dirname(path)],
      sql: `SELECT payload FROM (${sampled}) ORDER BY record_index`,
    })
    return rows.map(([payload]) => String(payload))
  } catch (error) {
    throw new AppError('validation_error', 'the raw Parquet of the endpoint cannot be read', { cause: error })
  }
}
