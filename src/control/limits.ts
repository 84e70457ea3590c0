/** Tuning of control. Limits that are part of the API are in `model/limits.ts`. */
import { KiB, MiB } from '#lib/bytes.ts'
import { dayMs } from '#lib/time-units.ts'

export const controlLimits = {
  bodyBytesMax: MiB,
  /** One hundred commits with a hundred views each. */
  commitsBodyBytesMax: 16 * MiB,
  /** A report of 20 000 logs with a reason each. */
  heartbeatBodyBytesMax: 32 * MiB,
  /** Bodies of one node that are being received: a report of each process, with room for commits. */
  nodeBodiesBytesMax: 96 * MiB,
  paramCharsMax: 128,
  connectionsMax: 10_000,
  /** Time for the head of a request to arrive. The time for the whole request is set in `config/config.ts`. */
  headersTimeoutMs: 10_000,
  keepAliveTimeoutMs: 72_000,
  timeoutCheckMs: 1_000,
  /** Between two log lines about requests that fail for the same cause. */
  warnIntervalMs: 60_000,
  /** A person waits for it at a button. */
  signInProviderTimeoutMs: 10_000,
  /** A test event: how long ingest may take, how large its response may be, when to try again. */
  testEventTimeoutMs: 10_000,
  testEventResponseBytesMax: 64 * KiB,
  testEventRetrySeconds: 5,
  /** Minimum duration of a rejected token exchange, whatever is wrong with the key. */
  exchangeRejectionMs: 250,
  /** Requests are counted in windows of this length. */
  rateWindowMs: 60_000,
  /** Callers for which parts of their limits are taken from the database in one query. */
  allowancesTakenAtOnce: 500,
  /** Callers whose request rate is tracked by this process. */
  rateLimitedCallersMax: 10_000,
  /** Versions of the sections of a region by whose digest a poll may name what it has. */
  snapshotOffersKept: 4,
  /** A response of this size at most is one buffer, which all processes with the same difference share. */
  snapshotBytesShared: MiB,
  /** Long polls of one node: one for each of its two processes, with room for restarts. */
  snapshotWaitersPerNode: 8,
  /** How often the write-ahead log of SQLite is emptied: less of it is lost if it is damaged. */
  checkpointMs: 10_000,
  /** Size of the cache of serialized snapshot sections. A full snapshot of 10 000 endpoints and 100 000 keys is about 25 MiB. */
  sectionCacheBytes: 64 * MiB,
  /** Accounts whose failed calls are counted. */
  auditedAccountsMax: 10_000,
  /** Accounts with a metric of their own: those that sent most today. */
  accountsShown: 20,
  /** Logs of nodes, and nodes, with metrics of their own: those with the most bytes. */
  lagsShown: 500,
  nodesShown: 200,
  /** Views and codes with a metric of their own: those that rejected a row most recently. */
  dlqCodesShown: 1_000,
  /** A node that seems to be lost has this time to be heard: control, or its database, may have been away itself. */
  silenceConfirmedMs: 30_000,
  housekeepingIntervalMs: 900_000,
  /** Rows that one statement of housekeeping removes; of counters, those of one bucket. */
  rowsRemovedAtOnce: 1_000,
  /** Each has up to ten thousand files. */
  compactionsRemovedAtOnce: 10,
  /** How often it is looked whether the database lost commits. After an attempt that did not read every bucket the pause doubles. */
  lostCommitsCheckMs: 2_000,
  recoveryDelayMsMin: 60_000,
  recoveryDelayMsMax: 3_600_000,
  /** A node whose log was adopted ends within this time of the first refusal: by then its other process was refused as well. */
  fencedEndsMs: 60_000,
  /** Reports of a machine that lost its place about its disk: so many at first, a million segments, and then one in this time. */
  leftReportsMax: 50,
  leftReportMs: 600_000,
  /** Accounts whose losses are looked for in the buckets at a time, each in one endpoint. */
  accountsSearchedMax: 4,
  /** The markers of an endpoint are read for so long at most. A bucket may have millions. */
  searchMsMax: 1_800_000,
  /** A bucket without the markers that it should have is tried again for so long: its disk may be mounted again. */
  emptyBucketsMs: 86_400_000,
  /** Problems that a loss names, and their length at most. */
  searchProblemsShown: 3,
  searchProblemCharacters: 1_000,
  /** Problems in one line of the log. */
  problemsLogged: 10,
  /** How often endpoints that compact by themselves are checked, and how many are read at once. */
  compactionCheckMs: 60_000,
  compactionEndpointsAtOnce: 1_000,
  /** How often canaries are judged, and how many are read at once. */
  canaryCheckMs: 10_000,
  /** How often the bytes that wait on nodes are sampled, so that each minute has a sample, and how many endpoints are written at once. */
  undeliveredSampleMs: 55_000,
  undeliveredEndpointsAtOnce: 500,
  /** How often revocations are compared with what nodes report, and how many at once. */
  revocationCheckMs: 2_000,
  revocationsAtOnce: 200,
  canariesAtOnce: 100,
  /** How often draining endpoints are checked. */
  drainCheckMs: 2_000,
  /** Longer than the day that the API reports, to tolerate clock skew. */
  viewCountersKeptMs: 26 * 3_600_000,
  /** How often the age of the signing keys is checked. */
  rotationCheckMs: 600_000,
  /** Time for one step of a validation (write with the role, list, read, upload in parts, delete). */
  validationTimeoutMs: 10_000,
} as const

export const signingKeyLimits = {
  /** A new key is created when the newest is older than this. */
  rotationSeconds: 30 * 86_400,
  /** A new key signs only after every node and control process has had time to load it. */
  activationSeconds: 120,
} as const

export const settlementLimits = {
  /** How often detached bindings are checked. */
  checkMs: 2_000,
  /** A node may be writing a segment that it began to seal before a binding was detached, and its clock may be behind by so much. */
  graceMs: 60_000,
  /** A node that was silent for this long no longer delays settling. If it comes back, backfills cover its segments. */
  silentMs: 7 * dayMs,
  /** Bindings looked at in one check, and settled in one change. */
  batchMax: 500,
} as const

export const drainLimits = {
  /** Draining endpoints read at once. */
  pageEndpointsMax: 1_000,
} as const

/** The check whether new endpoints are served. */
export const newEndpointLimits = {
  tickMs: 1_000,
  /** Endpoints that are considered for `provisioned_at` at once. */
  unprovisionedMax: 500,
  /** After that, so many times as long is nothing considered. */
  restFactor: 9,
} as const

/** An endpoint without a healthy node for this long has failed. */
export const nodeFailedSeconds = 9
/** An endpoint that was not provisioned within this time has failed. */
export const provisioningSeconds = 300
/** A node without a heartbeat for this long is gone and no longer counted. */
export const nodeGoneSeconds = 3_600
/** An endpoint with a sealed segment that is uncommitted for this long is degraded. */
export const deliveryLagSecondsMax = 300
