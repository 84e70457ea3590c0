import { quoteLiteral } from '#duckdb/quote.ts'
import { parquetMetadata } from '#model/types/file-form.ts'
import { buildLimits } from './limits.ts'

/**
 * Returns the statement that writes rows to a Parquet file, as all files of Inlet are written. Its result is their number. Version 1 of the format:
 * other readers cannot read what DuckDB writes as version 2.
 */
export function copyToParquetSql(select: string, path: string, rowGroupBytes: number, bloomFilters = true): string {
  const without = bloomFilters ? '' : ' WRITE_BLOOM_FILTER false,'
  return `COPY (${select}) TO ${quoteLiteral(path)} (FORMAT parquet, PARQUET_VERSION v1, COMPRESSION zstd, COMPRESSION_LEVEL ${buildLimits.compressionLevel},
    STRING_DICTIONARY_PAGE_SIZE_LIMIT ${buildLimits.dictionaryBytes}, ${parquetMetadata},${without}
    ROW_GROUP_SIZE ${buildLimits.rowGroupRowsMax}, ROW_GROUP_SIZE_BYTES ${rowGroupBytes})`
}

/** Returns SQL for the rows of Parquet files, one file after the other. */
export function parquetRowsSql(files: readonly string[]): string {
  return `SELECT * FROM read_parquet([${files.map(quoteLiteral).join(', ')}], hive_partitioning = false)`
}
