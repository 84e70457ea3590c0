/** Tuning of what this node reports. */
export const reportLimits = {
  /** How often control learns of the room on the disk. */
  spaceReportMs: 60_000,
  /** Accounts that the metrics show by name. */
  accountsShown: 20,
  /** How often ingest reports the series of its endpoints, and the length of their buckets. */
  seriesReportMs: 5_000,
  seriesBucketMs: 10_000,
  /** More buckets than these are reported once a minute: control then writes the rows of each minute and hour less often. */
  seriesLiveItemsMax: 200,
  seriesManyMs: 60_000,
  /** Buckets that wait for control: of 100 endpoints, an hour and a half; of 10 000, a minute. */
  seriesItemsKept: 60_000,
  /** Control may be starting at the same time. */
  seriesFailuresBeforeLog: 5,
  /** How long the last report may take when the process stops. */
  lastSeriesReportMs: 1_000,
  /** How long a node that stops waits until control knows. */
  announceMs: 1_000,
  /** The last part of a departure: clients are led elsewhere, some at a time. */
  endConnectionsMs: 3_000,
} as const
