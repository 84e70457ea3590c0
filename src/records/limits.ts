import { KiB, MiB } from '#lib/bytes.ts'

export const buildLimits = {
  /** Timeout of one statement over a segment: the least, and the most. */
  statementTimeoutMsMin: 60_000,
  statementTimeoutMsMax: 600_000,
  /** An eighth of the slowest conversion that was measured, which ran in small pieces. */
  statementBytesPerSecondMin: 512 * KiB,
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

/** Returns how long one statement over that many bytes of records may take. A view that takes longer fails on the segment. */
export function statementTimeoutMs(bytes: number): number {
  const { statementTimeoutMsMin, statementTimeoutMsMax, statementBytesPerSecondMin } = buildLimits
  return Math.min(statementTimeoutMsMax, statementTimeoutMsMin + (bytes / statementBytesPerSecondMin) * 1000)
}
