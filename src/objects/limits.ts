import { KiB, MiB } from '#lib/bytes.ts'

/** Tuning of the S3 object store. Uploads hold at most `multipartsParallel` × (`partsParallel` + 2) × `partBytes` in memory. */
export const s3Limits = {
  /** Larger files are uploaded in parts. S3 accepts a single PUT up to 5 GiB, and up to 10 000 parts of 5 MiB to 5 GiB each. */
  multipartThresholdBytes: 64 * MiB,
  partBytes: 8 * MiB,
  partsParallel: 2,
  /** Read buffer for files that are being uploaded. */
  readBytes: 256 * KiB,
  /** Multipart uploads in flight, over all buckets. */
  multipartsParallel: 2,
  /** Largest object that is read into memory. Only markers are. */
  getBytesMax: 16 * MiB,
  /** Attempts of one request. After that the error goes to the caller, who has its own back-off. */
  attemptsMax: 3,
  retryDelayMsMin: 100,
  retryDelayMsMax: 2_000,
  connectTimeoutMs: 5_000,
  /** A request that transfers no byte for this long fails. */
  idleTimeoutMs: 30_000,
  /** Connections per host. */
  socketsMax: 64,
  /** Timeout for removing the parts of a failed upload. */
  cleanUpTimeoutMs: 10_000,
  /** Timeout for AssumeRole, including retries. */
  assumeTimeoutMs: 15_000,
  /** AWS grants an hour unless the role's maximum was raised, and never more when one role assumes another. */
  sessionSeconds: 3_600,
  /** Session length to request first for signing a URL that must stay valid for an hour. */
  linkSessionSeconds: 7_200,
  /** Sessions are renewed this long before they expire. */
  renewBeforeMs: 300_000,
  /** Where a role allows only one-hour sessions, one older than this no longer signs a URL that is valid for an hour. */
  linkSessionAgeMsMax: 30_000,
  /** After an access error, a session older than this is discarded: the role may have been deleted and created again. */
  deniedSessionAgeMsMin: 10_000,
  /** A result of AssumeRole, success or failure, is shared by all callers for at least this long. */
  stsResultSharedMs: 1_000,
  /** Cached SDK clients (about 40 KB each) and role sessions (about 2 KB each), and how long an unused one is kept. */
  clientsMax: 500,
  sessionsMax: 10_000,
  sessionIdleMs: 3_600_000,
  regionsMax: 64,
} as const
