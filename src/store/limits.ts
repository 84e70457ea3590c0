/** Bounds of the store. */
export const storeLimits = {
  /** Connections to Postgres that one process holds. */
  poolConnectionsMax: 10,
  /** How long a caller waits for one of them. */
  connectTimeoutMs: 5_000,
  statementTimeoutMs: 30_000,
  /** How long a statement on SQLite waits, with the thread, for another process to finish its transaction. */
  sqliteBusyTimeoutMs: 250,
  /** Prepared statements that are kept on SQLite. */
  sqliteStatementsMax: 500,
  /** How often a transaction is tried that met another one. */
  transactionAttemptsMax: 10,
  transactionRetryDelayMsMax: 200,
  /** How often a version number is tried that somebody else took first. */
  versionAttemptsMax: 20,
  /** Rows in one INSERT: both databases bound the parameters of a statement. */
  insertRowsMax: 500,
} as const

/** Leases of job units. */
export const leaseLimits = {
  /** Jobs, and available units of each, that are considered for one request. */
  jobsPerRequestMax: 200,
  unitsPerJobMax: 100,
  /** A lease that is not renewed for this long may be taken by another node. */
  leaseMs: 60_000,
  /** A unit fails for good after so many processes died while they worked on it. */
  deathsMax: 5,
  /** How long a unit waits after a transient failure. */
  retryMs: 10_000,
} as const
