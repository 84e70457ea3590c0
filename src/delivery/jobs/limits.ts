export const jobWorkerLimits = {
  /** Units that a process runs at the same time. */
  unitsParallel: 2,
  /** Interval at which a process renews its leases and requests more, and its maximum after failures. */
  pollMs: 2_000,
  pollMsMax: 30_000,
  /** Between attempts to report the outcome of a unit. */
  reportRetryMsMin: 200,
  reportRetryMsMax: 2_000,
  /** How long a process that is stopping tries to release its leases. */
  releaseMs: 2_000,
  /** Files that a compaction downloads at the same time. */
  downloadsParallel: 8,
  /** Files that a unit removes at the same time. */
  removalsParallel: 8,
} as const
