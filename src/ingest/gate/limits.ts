import { tokenLimits } from '#model/limits.ts'

/** Tuning that the protocols share. Bounds that clients are promised are in `model/limits.ts`. */
export const ingestLimits = {
  /** After this time a connection that has not authenticated makes way for a new one, if there are too many. */
  evictableAfterMs: 1_000,
  /**
   * Part of the disk budget that is kept for accounts that come later, or whose share grew. What is on the disk may stay for good, unlike
   * what is in memory.
   */
  diskPartForNewcomers: 1 / 8,
  /** How often free disk space and the health of the WAL are checked. */
  admissionPollMs: 1_000,
  /** How often control learns of the room on the disk. */
  spaceReportMs: 60_000,
  /** Connections that the kernel keeps waiting to be accepted. */
  listenBacklog: 4_096,
  /** Accounts that the metrics show by name. */
  accountsShown: 20,
  /** `Retry-After` if memory is full; if disk or WAL is full; if an append failed or there is no configuration; if the endpoint is paused. */
  retryMemorySeconds: 1,
  retryDiskSeconds: 5,
  retryStoreSeconds: 2,
  retryPausedSeconds: 30,
  /** The same for a key or token that may be newer than the configuration, and for how long one is taken for new. */
  retryUnverifiableSeconds: 5,
  unknownCredentialMs: 300_000,
  /** Control tells of revocations for two hours: a node that was cut off for this long may never learn of one. */
  revocationsMissedAfterMs: (tokenLimits.revokedKeysKeptSeconds / 2) * 1000,
  /** How often ingest reports what it accepted, if that changed. */
  usageReportMs: 2_000,
  /** One account is reported so often at least, by a node that is one of many. */
  usageReportMsMax: 60_000,
  /** How often ingest reports the series of its endpoints, and the length of their buckets. */
  seriesReportMs: 5_000,
  seriesBucketMs: 10_000,
  /** More buckets than these are reported once a minute: control then writes the rows of each minute and hour less often. */
  seriesLiveItemsMax: 200,
  seriesManyMs: 60_000,
  /** Buckets that wait for control: of 100 endpoints, an hour and a half; of 10 000, a minute. */
  seriesItemsKept: 60_000,
  /** Control may be starting at the same time. */
  usageFailuresBeforeLog: 5,
  /** How long the last report may take when the process stops. */
  lastUsageReportMs: 1_000,
  /** How long a node that stops waits until control knows. */
  announceMs: 1_000,
  /** The last part of a departure: clients are led elsewhere, some at a time. */
  endConnectionsMs: 3_000,
  /** How often idempotency keys that need not be remembered any more are removed, and those that could not be written are tried again. */
  requestsUpkeepMs: 10_000,
  /** So many wait at most for the next segment that is sealed. */
  requestsUnwrittenMax: 4_096,
  /** If the account has too many connections. */
  retryConnectionsSeconds: 5,
} as const
