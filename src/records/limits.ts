import { MiB } from '#lib/bytes.ts'

export const buildLimits = {
  /** Timeout of one statement over a segment. A view that takes longer fails on the segment. */
  statementTimeoutMs: 600_000,
  /** Read size for segment files. */
  readBytes: MiB,
  /** Rows in a Parquet row group, and their size in memory. */
  rowGroupRowsMax: 122_880,
  rowGroupBytes: 8 * MiB,
  /** Size of a row group in a file that was written in pieces, because memory is short. */
  rowGroupBytesMerged: MiB,
  /** Size of the payloads that DuckDB reads from a table at once. */
  vectorBytes: 6 * MiB,
} as const
