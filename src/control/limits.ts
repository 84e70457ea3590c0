/** Tuning of control. What is part of the API is in `model/limits.ts`. */
import { MiB } from '#lib/bytes.ts'

export const controlLimits = {
  bodyBytesMax: MiB,
  /** One hundred commits with a hundred views each. */
  commitsBodyBytesMax: 32 * MiB,
  paramCharsMax: 128,
  connectionsMax: 10_000,
  /** Time for the head of a request to arrive whole; how long all of it may take is in `config.ts`. */
  headersTimeoutMs: 10_000,
  keepAliveTimeoutMs: 72_000,
  timeoutCheckMs: 1_000,
  /** How long an exchange takes that is refused, whatever is wrong with the key. */
  exchangeRefusalMs: 250,
  /** Callers whose rate is remembered at once. */
  rateLimitedCallersMax: 10_000,
  /** Nodes that may wait for a newer snapshot at once. */
  snapshotWaitersMax: 2_000,
  /** How often the epoch is read to see what other processes changed. */
  epochPollMs: 1_000,
  /** Serialized sections of snapshots that are kept. A full snapshot of 10 000 endpoints and 100 000 keys has about 25 MiB. */
  sectionCacheBytes: 64 * MiB,
  housekeepingIntervalMs: 3_600_000,
  /** How often endpoints that drain are looked at. */
  drainCheckMs: 2_000,
  /** Buckets of view counters are kept for longer than the day that is shown, for clocks that differ. */
  viewCountersKeptMs: 26 * 3_600_000,
  /** How often the age of the signing keys is looked at. */
  rotationCheckMs: 600_000,
  /** Time for one step of a validation (assume the role, put, remove). */
  validationTimeoutMs: 10_000,
} as const

export const signingKeyLimits = {
  /** A new key is made when the newest is older than this. */
  rotationSeconds: 30 * 86_400,
  /** A new key signs only after every node and control process has had time to learn it. */
  activationSeconds: 120,
} as const

export const drainLimits = {
  /** Beyond the age at which an open segment is sealed: for nodes to learn that the endpoint drains, to deliver, and to say so. */
  graceSeconds: 10,
  /** Endpoints that are looked at in one go. */
  endpointsMax: 1_000,
} as const
