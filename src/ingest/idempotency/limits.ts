/** Tuning of the memory of idempotency keys. */
export const storedRequestLimits = {
  /** How often keys that need not be remembered any more are removed, and those that could not be written are tried again. */
  upkeepMs: 10_000,
  /** So many wait at most for the next segment that is sealed. */
  unwrittenMax: 4_096,
  /** So many are read from a file at once. */
  readAtOnce: 4_096,
} as const
