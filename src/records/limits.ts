import { GiB, KiB, MiB } from '#lib/bytes.ts'

export const buildLimits = {
  /** Timeout of one statement over a segment. */
  statementTimeoutMs: 600_000,
  /** Timeout of a view on a segment, in however many statements: the least, and the most. */
  viewTimeoutMsMin: 60_000,
  viewTimeoutMsMax: 600_000,
  /** An eighth of the slowest conversion that was measured. */
  viewBytesPerSecondMin: 512 * KiB,
  /** The slowest conversion that was measured, which ran in small pieces. */
  viewBytesPerSecondMeasured: 4 * MiB,
  /** Space for spilled data besides that for the records: for the values of views. */
  spillBytesMin: GiB,
  /** Space for what DuckDB adds to a record: sizes, times and sources. */
  spillBytesPerRecord: 128,
  /** Read size for segment files. */
  readBytes: MiB,
  /** Rows in a Parquet row group. Only rows of a few bytes reach it. */
  rowGroupRowsMax: 1_048_576,
  /**
   * Size of a row group in memory. In a file it is a sixth of that, and a reader of a few columns sends a request for each in each row group. Writing
   * holds about three times as much, so a row group is at most this part of DuckDB's memory.
   */
  rowGroupBytes: 16 * MiB,
  rowGroupShareMax: 1 / 20,
  /** Row groups of a compacted file, which stays for long. If one does not fit into memory, the next size is tried. */
  rowGroupBytesCompacted: [64 * MiB, 32 * MiB, 16 * MiB, MiB],
  /** Level of zstd: on events, as small as its default of 3, in three quarters of the time. */
  compressionLevel: 1,
  /** Texts of a column with more distinct bytes in a row group are written without a dictionary, which costs time and saves nothing then. */
  dictionaryBytes: 128 * KiB,
  /** Size of a row group in a file that was written in pieces, because memory is short. */
  rowGroupBytesMerged: MiB,
  /** A table of extracted values ends after records of this size that DuckDB would read at once. */
  sliceBytes: 6 * MiB,
} as const

/** Returns the size of a row group for a database of that much memory. */
export function rowGroupBytesWithin(memoryBytes: number): number {
  return Math.min(buildLimits.rowGroupBytes, Math.floor(memoryBytes * buildLimits.rowGroupShareMax))
}

/** Returns how long a view may take on a segment of that many bytes. A view that takes longer fails on the segment. */
export function viewTimeoutMs(bytes: number): number {
  const { viewTimeoutMsMin, viewTimeoutMsMax, viewBytesPerSecondMin } = buildLimits
  return Math.min(viewTimeoutMsMax, viewTimeoutMsMin + (bytes / viewBytesPerSecondMin) * 1000)
}

/**
 * Returns how long all views may take on a segment of that many bytes, one after the other: long enough for as many views as are as slow as the
 * slowest that was measured, and for two that take all of their time.
 */
export function viewsTimeoutMs(bytes: number, views: number, oneTimeoutMs: number): number {
  return 2 * oneTimeoutMs + views * (bytes / buildLimits.viewBytesPerSecondMeasured) * 1000
}

/**
 * Returns how much a conversion may spill to disk. The records always fit, even twice. Values of views are extracted one view at a time if those
 * of all do not fit.
 */
export function spillBytesMax({ bytes, records }: { readonly bytes: number; readonly records: number }): number {
  return buildLimits.spillBytesMin + 2 * bytes + buildLimits.spillBytesPerRecord * records
}
