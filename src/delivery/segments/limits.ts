/** Tuning that the stages of a delivery share. Bounds that clients are promised are in `model/limits.ts`. */
export const deliveryLimits = {
  /** How often a stop says what it still delivers. */
  stopProgressMs: 3_000,
  /** Delay between attempts for one segment, and for one destination that is backing off. */
  retryDelayMsMin: 200,
  retryDelayMsMax: 30_000,
  /** How long one question to control whether a commit is recorded may take. */
  lookupTimeoutMs: 3_000,
  /** From the start of delivery, how long such questions wait for control. */
  controlWaitMsMax: 3_000,
  /** A repeated failure is logged once per cause in this time. */
  warnIntervalMs: 60_000,
} as const
