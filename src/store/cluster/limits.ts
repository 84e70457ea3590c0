/** Tuning of what control processes on one database share. */
export const clusterLimits = {
  /** Long polls for snapshots at the same time: two of each node. */
  snapshotWaitersMax: 8_000,
  /** How often the epoch is read to detect changes made by other processes. */
  epochPollMs: 500,
  /** How often the clock of the database is read. A response that took longer is ignored. */
  databaseClockMs: 5_000,
  databaseClockRoundTripMsMax: 500,
  /** A difference from the clock of this machine that is logged. */
  clockDifferenceSecondsNoted: 5,
  /** How often all servers of a database with several hosts are asked what they are. */
  databaseWatchMs: 5_000,
  /** How often the lock of the leader is taken or confirmed. */
  leadershipPollMs: 1_000,
  /** Work begins only if the lock was confirmed more recently than this. */
  leadershipProofMs: 5_000,
} as const
