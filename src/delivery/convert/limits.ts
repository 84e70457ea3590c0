import { GiB, MiB } from '#lib/bytes.ts'

/** Tuning of conversions. */
export const conversionLimits = {
  /** Memory of a conversion process, as a multiple of the memory of a conversion: DuckDB does not count everything. */
  memoryFactor: 3,
  /** Size of a file that it may write, including spilled data. */
  fileBytesMax: 64 * GiB,
  /** A detached view may take less time on a segment than others: this factor. */
  detachedViewTimeoutFactor: 0.25,
  /** All shadows of a segment may take so long together, and longer for each MiB of it. */
  shadowTimeoutMs: 3_000,
  shadowTimeoutMsPerMiB: 200,
  /** After a shadow failed, it is left out of so many segments: twice as many after each further failure, up to a bound. */
  shadowRestSegmentsMin: 20,
  shadowRestSegmentsMax: 1_280,
  /** A conversion uses slots that nobody else wants for groups of at least so many views, and of so many bytes times views. */
  groupViewsMin: 4,
  groupBytesMin: 256 * MiB,
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
  startMs: 60_000,
  /** Keys that a process asks for at once. */
  questionBytesMax: MiB,
  /** Extra time after the limit of a step, in which DuckDB may handle the interrupt, before the process is killed. */
  killAfterMs: 2_000,
  /** How long an idle conversion process is kept. */
  idleMs: 60_000,
  /** How long a conversion waits to learn of changes that were made before its segment was sealed. */
  configurationWaitMsMax: 2_000,
  /** From one question about them to the next. */
  configurationDelayMsMax: 200,
} as const
