export const windowLimits = {
  /** Parts of a window: old keys are removed by part, and the index of one has up to one more. */
  slices: 4,
  /** Keys of old slices that are removed with each segment: so many, and so many times those that it adds. */
  expiredKeysMin: 10_000,
  expiredKeysFactor: 2,
  /** Pages of the file that are returned to the disk with each segment. */
  vacuumPages: 2_000,
  /** Memory for pages of one index. */
  cacheKiB: 16_384,
  /** How long a process waits for another that uses the index. */
  busyTimeoutMs: 10_000,
  /** Bytes of a file of keys that are read at once. */
  readBytes: 65_536,
  /** After this time without progress in rebuilding an index, the window begins anew. */
  rebuildMs: 900_000,
  /** Commits whose files are fetched, and read by one process, at once. */
  rebuildCommits: 32,
  rebuildBytes: 256_000_000,
  /** From one look for indexes that nobody needs to the next. */
  cleanIntervalMs: 600_000,
} as const
