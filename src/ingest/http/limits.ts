/** Tuning of the HTTP server. Bounds that clients are promised are in `model/limits.ts`. */
import { KiB, MiB } from '#lib/bytes.ts'

export const httpLimits = {
  /** How often node:http checks for overdue requests. */
  timeoutCheckMs: 1_000,
  /** Up to this many remaining bytes of a rejected body are read and discarded, so that the connection can be reused. */
  discardBytesMax: MiB,
  /** More than this is read in turns: so many reads of at most 64 KiB, over all connections, and then a pause. */
  discardAtOnceBytesMax: 64 * KiB,
  discardReadsPerTurn: 4,
  discardTurnMs: 10,
  /** A connection with this many requests and pieces of bodies in less than this time is read in turns with other such connections. */
  busyPieces: 256,
  busyMs: 50,
  /** Nothing more is read of a connection with so many requests that have no response yet: each takes memory, and may wait for its commit. */
  unansweredMax: 100,
  /** A connection that closes while a body still arrives keeps reading for this long, so that the client can read the response. */
  lingerMsMax: 30_000,
  lingerIdleMs: 5_000,
  /** After SIGTERM, how long a body in progress may take to arrive. */
  drainBodyMs: 5_000,
  /** Control is asked at least once who has the commit of a receipt. */
  lookUpMsMin: 2_000,
  /** `Retry-After` of a node that is shutting down. */
  retryAfterSeconds: 2,
} as const
