/** Tuning of the store. */
import { MiB } from '#lib/bytes.ts'

export const storeLimits = {
  /** Canaries that their rule stopped, which a view lists. */
  stoppedCanariesShown: 20,
  /** Attempts at a transaction that collides with others. */
  transactionAttemptsMax: 10,
  transactionRetryDelayMsMax: 200,
  /** Attempts to get a free version number. */
  versionAttemptsMax: 20,
  /** Definitions in one page of views. Fewer views than asked for are returned if theirs are larger. */
  pageDefinitionBytesMax: 2 * MiB,
  /** Starts of ingest on one node whose counters are kept apart, for each account and day. */
  usageRunsMax: 10,
  /** A rate that a node reported longer ago is over, because nodes report only accounts that send. It is the longer the more rows there are. */
  rateMsMin: 10_000,
  rateMsPerRow: 3_000,
  rateMsMax: 75_000,
} as const

/** Leases of job units. */
export const leaseLimits = {
  /** Jobs, and available units of each, considered for one request. */
  jobsPerRequestMax: 200,
  unitsPerJobMax: 100,
  /** A lease that is not renewed for this long may be taken by another node. */
  leaseMs: 60_000,
  /** How long a unit waits after a transient failure. */
  retryMs: 10_000,
  /** How long it waits after the process that worked on it ended for the second time: twice as long after each further time, up to a bound. */
  lostDelayMsMin: 5_000,
  lostDelayMsMax: 900_000,
} as const
