import { MiB } from '#lib/bytes.ts'

export const buildLimits = {
  /** One statement over a segment; a view that takes longer fails on it. */
  statementTimeoutMs: 600_000,
  /** What is read from a segment at once. */
  readBytes: MiB,
  /** Rows in a row group of Parquet, and their bytes in memory. */
  rowGroupRowsMax: 122_880,
  rowGroupBytes: 8 * MiB,
  /** The same where the records had to be cut to fit in memory. */
  rowGroupBytesFitted: MiB,
  /** Payload bytes that DuckDB reads from a table at once. */
  vectorBytes: 6 * MiB,
} as const
