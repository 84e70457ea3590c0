/** Tuning of the scrub. */
export const scrubLimits = {
  /** Findings that are kept. More are counted. */
  findingsMax: 1_000,
  /** A marker that is newer than this may not have been reported yet. */
  unreportedMs: 600_000,
  /** Markers without a commit that are read in one folder to see how new they are. */
  unknownMarkersMax: 1_000,
  /** Bytes of a segment that are in memory at once. */
  scanBufferBytes: 1024 * 1024,
  /** From the start of the process to the first pass. */
  firstPassMs: 3_600_000,
  /** From one recheck of the findings to the next. */
  recheckMs: 1_800_000,
  /** From one look at whether a pass is due to the next. */
  checkMs: 10_000,
  /** Without reading files of buckets, segments on the node are still read at this rate. */
  bytesPerSecondMin: 1024 * 1024,
  /** After control or the database was away. */
  retryMsMax: 600_000,
  /** Between two files of the bucket: a pass is no burst of requests. */
  requestMs: 20,
} as const
