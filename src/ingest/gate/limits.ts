import { KiB } from '#lib/bytes.ts'
import { tokenLimits } from '#model/limits.ts'

/** Tuning that the protocols share. Bounds that clients are promised are in `model/limits.ts`. */
export const gateLimits = {
  /** After this time a connection that has not authenticated makes way for a new one, if there are too many. */
  evictableAfterMs: 1_000,
  /**
   * Part of the disk budget that is kept for accounts that come later, or whose share grew. What is on the disk may stay for good, unlike
   * what is in memory.
   */
  partForNewcomers: 1 / 8,
  /** How often free disk space and the health of the WAL are checked. */
  roomPollMs: 1_000,
  /** Memory overhead of a record that is not durable yet, beside its payload and envelope. */
  recordOverheadBytes: 256,
  /** `Retry-After` if memory is full; if disk or WAL is full; if an append failed or there is no configuration; if the endpoint is paused. */
  retryMemorySeconds: 1,
  retryDiskSeconds: 5,
  retryStoreSeconds: 2,
  /** Names of this node disappear from DNS meanwhile. */
  retryFencedSeconds: 5,
  retryPausedSeconds: 30,
  /** The same for a key or token that may be newer than the configuration, and for how long one is taken for new. */
  retryUnverifiableSeconds: 5,
  unknownCredentialMs: 300_000,
  /** Control tells of revocations for two hours: a node that was cut off for this long may never learn of one. */
  revocationsMissedAfterMs: (tokenLimits.revokedKeysKeptSeconds / 2) * 1000,
  /** How often control is asked which segments are delivered, while somebody waits. */
  commitPollMs: 1_000,
  /** How long a repeated request waits for the commit of records that are on an adopted disk alone. */
  adoptedWaitMs: 5_000,
  /** Memory of one that waits for a commit, also if its records take none any more. */
  commitWaitBytes: 2 * KiB,
  /** If the account has too many connections. */
  retryConnectionsSeconds: 5,
  /** How often ingest reports what it accepted, if that changed. */
  usageReportMs: 2_000,
  /** One account is reported so often at least, by a node that is one of many. */
  usageReportMsMax: 60_000,
  /** Control may be starting at the same time. */
  usageFailuresBeforeLog: 5,
  /** How long the last report may take when the process stops. */
  lastUsageReportMs: 1_000,
} as const
