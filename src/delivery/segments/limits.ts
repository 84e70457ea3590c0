import { GiB, MiB } from '#lib/bytes.ts'

/** Tuning of delivery. Bounds that clients are promised are in `model/limits.ts`. */
export const deliveryLimits = {
  /** Files uploaded at the same time, over all segments. */
  uploadsParallel: 12,
  /** How many of them may go to one destination, so that a destination that hangs leaves slots for others. */
  uploadsParallelPerDestination: 8,
  /** In addition, one file at a time for each destination that is backing off, up to this many in total. */
  uploadsParallelBackingOff: 16,
  /** Memory of a conversion process, as a multiple of the memory of a conversion: DuckDB does not count everything. */
  conversionMemoryFactor: 3,
  /** Size of a file that it may write, including spilled data. */
  conversionFileBytesMax: 64 * GiB,
  /** A detached view may take less time on a segment than others: this factor. */
  detachedViewTimeoutFactor: 0.25,
  /** A conversion uses slots that nobody else wants for groups of at least so many views, and of so many bytes times views. */
  groupViewsMin: 4,
  groupBytesMin: 256 * MiB,
  /** How often a stop says what it still delivers. */
  stopProgressMs: 3_000,
  /** Delay between attempts for one segment, and for one destination that is backing off. */
  retryDelayMsMin: 200,
  retryDelayMsMax: 30_000,
  /** After an attempt at a segment that a required view holds, at least so many times as long as the attempt took, up to a bound. */
  heldRestFactor: 9,
  heldRestMsMax: 600_000,
  /** A segment is parked after this many failed conversions, each followed by a successful one of something else. */
  contentFailuresMax: 2,
  /** A segment is parked after so many conversions whose process died, each followed by a successful one of something else. */
  crashesMax: 4,
  /** Delay between such conversions: a lack of memory may pass. */
  crashDelayMsMin: 5_000,
  /** How long the start of a conversion process may take. */
  conversionStartMs: 60_000,
  /** Extra time after the limit of a step, in which DuckDB may handle the interrupt, before the process is killed. */
  conversionKillAfterMs: 2_000,
  /** How long an idle conversion process is kept. */
  conversionIdleMs: 60_000,
  /** How long one question to control whether a commit is recorded may take. */
  lookupTimeoutMs: 3_000,
  /** From the start of delivery, how long such questions wait for control. */
  controlWaitMsMax: 3_000,
  /** How long a conversion waits to learn of changes that were made before its segment was sealed. */
  configurationWaitMsMax: 2_000,
  /** From one question about them to the next. */
  configurationDelayMsMax: 200,
  /** A node with more logs reports only rows that changed: news at once, numbers alone after a time, so many rows a second on average. */
  lagsReportedWhole: 50,
  lagRowsPerSecond: 20,
  lagRefreshMsMax: 60_000,
  /** A repeated failure is logged once per cause in this time. */
  warnIntervalMs: 60_000,
} as const
