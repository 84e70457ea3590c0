/** Tuning of the reports about what waits for delivery. */
export const lagReportLimits = {
  /** A node with more logs reports only rows that changed: news at once, numbers alone after a time, so many rows a second on average. */
  reportedWhole: 50,
  rowsPerSecond: 20,
  refreshMsMax: 60_000,
} as const
