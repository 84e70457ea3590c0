/** Tuning of uploads. */
export const uploadLimits = {
  /** Files uploaded at the same time, over all segments. */
  parallel: 12,
  /** How many of them may go to one destination, so that a destination that hangs leaves slots for others. */
  parallelPerDestination: 8,
  /** In addition, one file at a time for each destination that is backing off, up to this many in total. */
  parallelBackingOff: 16,
} as const
