/** Tuning of the connections to a database. */
export const engineLimits = {
  /** Connections to Postgres per process. */
  poolConnectionsMax: 10,
  /** How long a caller waits for a connection: for a free one, or for a new one. */
  connectTimeoutMs: 5_000,
  /** How long a new connection takes at most. */
  openMs: 2_000,
  statementTimeoutMs: 30_000,
  /** Postgres ends a transaction whose process is silent for this long, so that its locks do not hold up heartbeats at other processes. */
  idleTransactionMs: 2_000,
  /** A connection to Postgres that is idle for this long is checked by the operating system. */
  keepAliveMs: 10_000,
  /** A query without a reply for this long makes the pool check whether the server still responds, within the same time. */
  probeMs: 2_000,
  /** While servers are asked which of them takes writes: how long one that does so waits for the others. */
  surveyGraceMs: 500,
  /** Postgres servers, by their own identifier, whose newest timeline is remembered. */
  systemsRemembered: 16,
  /** How long the leader waits for Postgres, to connect and for each reply. */
  leaderTimeoutMs: 3_000,
  /** Postgres closes the connection of a leader that is silent for this long, so that another process can lead. */
  leaderIdleMs: 10_000,
  /** How long a statement on SQLite waits for another process's transaction. It blocks the thread. */
  sqliteBusyTimeoutMs: 250,
  /** Prepared statements cached on SQLite. */
  sqliteStatementsMax: 500,
  /** Rows in one INSERT: both databases limit the parameters of a statement. */
  insertRowsMax: 500,
} as const
