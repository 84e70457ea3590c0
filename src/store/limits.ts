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
