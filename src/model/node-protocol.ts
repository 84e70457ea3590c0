import { z } from 'zod'
import { findAddressFault } from '#lib/ip-addresses.ts'
import { boundedList } from './bounded-list.ts'
import { SegmentCommit } from './commit.ts'
import { DatabasePosition } from './database-position.ts'
import { Region } from './endpoint.ts'
import { HeldSegments, heldMax, isInOrder } from './held-segments.ts'
import { Id } from './id.ts'
import { deliveredLookupMax, keyLimits, nodeLimits, reportedTextMax } from './limits.ts'
import { nodeSecretPattern } from './patterns.ts'
import { ReportedCount } from './reported-count.ts'
import { SegmentSeq } from './segment-seq.ts'
import { IngestCounts } from './series.ts'
import { Timestamp } from './timestamp.ts'

/**
 * Bounds of what a node reports. One that has more logs leaves out those with the least to report: `node/bounded-report.ts`. An array
 * with a bound is rejected before its items are looked at.
 */
export const reportLimits = {
  logsMax: 20_000,
  reasonCharsMax: 1_000,
  reasonsMax: 100,
  tlsPortsMax: 10,
} as const

/**
 * Values in the JSON of a call, where the bound of the management API is too low: a report of 20 000 logs, 100 commits with 100 views each or
 * one with the quality of 200, all units that a node can lease, 2 000 accounts, 2 000 keys, 500 buckets with all reasons and durations, and
 * 20 000 segments.
 */
export const nodeBodyPartsMax = {
  heartbeat: 320_000,
  commits: 320_000,
  jobReport: 150_000,
  usage: 15_000,
  keyUse: 3_000,
  series: 100_000,
  leftOnDisk: 200_000,
} as const

const isReachable = (address: string) => findAddressFault(address) === undefined
const unreachable = 'must be an address that clients can connect to, not an unspecified, multicast or broadcast one'

/** A reason of a node appears in the status of every endpoint that it affects. */
const Reason = z.string().max(reportLimits.reasonCharsMax)

/**
 * The protocol between nodes and control, under `/internal/v1` of a listener of its own. Every call carries `Authorization: Bearer
 * <node id>.<secret>`, the credential of the node; `join` carries a join token or the join secret, and `ca` nothing. A `node_id` other than
 * that of the credential is 403. A refused credential that the node once had is 401 with `fence`, which says why.
 *
 *   GET  /internal/v1/ca                   → 200 the root certificate that join tokens pin, in PEM; 404 if there is none
 *   POST /internal/v1/join                 Join        → 200 Joined, 401, 403 if the token is for another region. Idempotent.
 *   POST /internal/v1/adopt                Adopt       → 204; from then on only the new secret is accepted
 *   POST /internal/v1/take-over            TakeOver    → 204; 404 if there is no such node in the region, 409 while it runs. Idempotent.
 *   POST /internal/v1/take-over/next        TakeOverNext → 200 TakeOvers
 *   POST /internal/v1/take-over/end         TakeOverEnd → 204. Idempotent.
 *   POST /internal/v1/register             Register    → 200 Registered; 403 if the credential is for another region
 *   POST /internal/v1/snapshot             SnapshotRequest → 200 sections, one JSON document per line (`snapshot-sections.ts`),
 *                                          or 204 if nothing changed within `wait_ms`; 409 if the digest is not known
 *   POST /internal/v1/snapshot/check       SnapshotCheck → 200 SnapshotChecked
 *   GET  /internal/v1/committed-seqs       ?node_id= → 200 CommittedSeqs
 *   POST /internal/v1/heartbeat            Heartbeat   → 200 HeartbeatRecorded; 409 if it is older than the last, or its logs build on
 *                                          a report that control does not have
 *   GET  /internal/v1/heartbeat            ?node_id= → 200 LastHeartbeat
 *   POST /internal/v1/usage                UsageReport → 200 UsageTotals. Idempotent.
 *   POST /internal/v1/key-use              KeyUseReport → 200 KeyUseRecorded. Idempotent.
 *   POST /internal/v1/series               SeriesReport → 200 SeriesRecorded. Idempotent.
 *   POST /internal/v1/commits              CommitBatch → 200 CommitsRecorded. Idempotent.
 *   POST /internal/v1/left-on-disk         LeftOnDisk  → 200 LeftRecorded (`left-on-disk.ts`). Only with a credential that is refused because
 *                                          another machine has its place. Idempotent.
 *   POST /internal/v1/commits/lookup       CommitLookup → 200 CommitsFound
 *   POST /internal/v1/commits/delivered    DeliveredLookup → 200 DeliveredFound
 *   POST /internal/v1/scrub/…              which files a node verifies: `scrub.ts`
 *   GET  /internal/v1/certificate          → 200 IssuedCertificate for the region of the node, 404
 *   GET  /internal/v1/destinations/{id}    → 200 AssignableDestination (`destination.ts`), 404
 */
export const Register = z.strictObject({
  region: Region,
  /** Addresses for DNS. */
  ipv4: z.array(z.ipv4().refine(isReachable, unreachable)).max(nodeLimits.addressesMax),
  ipv6: z.array(z.ipv6().refine(isReachable, unreachable)).max(nodeLimits.addressesMax),
  /** `host:port` where ingest listens, for installations without DNS. */
  ingest_address: z.string().max(300),
  /** Ports at these addresses where clients find TLS; none if not set. */
  tls_ports: z.array(z.int().min(0).max(65_535)).max(reportLimits.tlsPortsMax).optional(),
  /** Version of Inlet that the node runs. */
  version: z.string().max(64).optional(),
})
export type Register = z.infer<typeof Register>

/** Asks for the id. A node makes its secret itself: it is on its disk before control learns of it. */
export const Join = Register.extend({
  node_id: Id,
  secret: z.string().regex(nodeSecretPattern),
  /** The secret before, which proves that the id is the node's own. */
  previous_secret: z.string().regex(nodeSecretPattern).nullable(),
})
export type Join = z.infer<typeof Join>

export const Joined = z.discriminatedUnion('joined', [
  z.object({ joined: z.literal(true) }),
  /** `revoked`: the secret is that of the id, but was revoked; the node may ask again with another one. `taken`: the id has another secret. */
  z.object({ joined: z.literal(false), reason: z.enum(['revoked', 'taken']) }),
])
export type Joined = z.infer<typeof Joined>

/** Gives the id of a node, whose log was adopted, the secret that the adopting machine made. */
export const Adopt = z.object({ secret: z.string().regex(nodeSecretPattern) })
export type Adopt = z.infer<typeof Adopt>

/**
 * Gives a node whose machine is lost to the node that asks, with the secret that it made for it. `lost_node_id` is in the same region. From then
 * on control refuses the lost machine.
 */
export const TakeOver = z.strictObject({ lost_node_id: Id, secret: z.string().regex(nodeSecretPattern) })
export type TakeOver = z.infer<typeof TakeOver>

/** Asks which lost nodes this one shall take over. `running`: those that it is at. */
export const TakeOverNext = z.strictObject({ node_id: Id, running: z.array(Id).max(100) })
export type TakeOverNext = z.infer<typeof TakeOverNext>

export const TakeOvers = z.object({ lost_node_ids: z.array(Id) })
export type TakeOvers = z.infer<typeof TakeOvers>

export const TakeOverEnd = z.strictObject({ lost_node_id: Id })
export type TakeOverEnd = z.infer<typeof TakeOverEnd>

export const Registered = z.object({ epoch: z.int() })

/** A required view that fails and so holds a log. The reason is in `blocked_by`. `since` is when it began to fail. */
export const FailingView = z.object({ view_id: Id, since: Timestamp })
export type FailingView = z.infer<typeof FailingView>

/**
 * State of a log on one node, read from the files on its disk.
 *
 * A row exists for every log directory that is not empty, whether or not the endpoint still exists, and for every draining endpoint.
 * Law: `closed` with no segment of any kind means that the node holds nothing of the endpoint and never will. The process that scans
 * looks for the file `closed` first and lists the segments after that.
 */
export const EndpointLag = z.object({
  endpoint_id: Id,
  open_segments: ReportedCount,
  /** Sealed segments that wait for delivery or are being delivered. */
  undelivered_segments: ReportedCount,
  parked_segments: ReportedCount,
  quarantined_segments: ReportedCount,
  /** Bytes of all these segments, open ones included. */
  undelivered_bytes: ReportedCount,
  /**
   * Acknowledged records of the open and the sealed segments; null if not all are counted, or if the log could not be listed: then the counts are 0.
   * This and the next two are missing in reports of the release before.
   */
  records: ReportedCount.nullable().optional(),
  /** The lowest and the highest seq of these segments; null if there is none. */
  first_seq: SegmentSeq.nullable().optional(),
  last_seq: SegmentSeq.nullable().optional(),
  /** These segments, neighbours together if there are many. Missing in reports of the release before. */
  held: boundedList(HeldSegments.refine(isInOrder, 'must begin before it ends'), heldMax).optional(),
  /** The same of those in quarantine. Missing in reports of the release before. */
  quarantined_first_seq: SegmentSeq.nullable().optional(),
  quarantined_last_seq: SegmentSeq.nullable().optional(),
  /** As of when the row is, if the log could not be read for this report. */
  counted_at: Timestamp.optional(),
  /** When the oldest uncommitted segment was sealed. */
  oldest_sealed_at: Timestamp.nullable(),
  /** Why delivery is blocked, for the owner of the endpoint; null if it is not. */
  blocked_by: Reason.nullable(),
  /** The view, if delivery is blocked by one. */
  failing_view: FailingView.nullable(),
  /** Whether ingest has durably refused further data for the log, because the endpoint drains. */
  closed: z.boolean(),
  /** Damage that the scrub of this node found for the endpoint, on its disk or in buckets: the count, and the first finding. */
  scrub_findings: ReportedCount.default(0),
  scrub_finding: Reason.nullable().default(null),
})
export type EndpointLag = z.infer<typeof EndpointLag>

export function countSegments(lag: EndpointLag): number {
  return lag.open_segments + lag.undelivered_segments + lag.parked_segments + lag.quarantined_segments
}

/** Any name would do, but not every text can be stored, and one statement records the heartbeats of many nodes. */
const storableName = z.string().regex(/^[\w-]{1,32}$/)

/** Logs on the node: all, or the difference to report `lag_base`. Control rejects a difference to a report it lacks with 409. */
const lagReport = {
  lag: boundedList(EndpointLag, reportLimits.logsMax),
  /** Names the report. */
  lag_version: storableName.optional(),
  lag_base: storableName.optional(),
  /** Endpoints whose rows of the report `lag_base` are over. */
  lag_gone: boundedList(Id, reportLimits.logsMax).optional(),
  /**
   * All that was acknowledged before is in the rows that control then has, but for those with a `counted_at` of their own (epoch ms, by the clock of
   * control). Missing from nodes of an earlier release.
   */
  counted_at: z.int().min(0).optional(),
}
const LagReport = z.strictObject(lagReport)
export type LagReport = z.infer<typeof LagReport>

/** A log that ingest cannot append to, or not everything that it gets, while others work. */
export const BlockedLog = z.object({
  endpoint_id: Id,
  /** Names the file and what is wrong with it, for the owner of the endpoint. */
  reason: Reason,
})
export type BlockedLog = z.infer<typeof BlockedLog>

/** Memory of a process and of its workers. */
export const ProcessMemory = z.strictObject({
  resident_bytes: ReportedCount,
  resident_peak_bytes: ReportedCount,
  heap_used_bytes: ReportedCount,
  heap_total_bytes: ReportedCount,
  external_bytes: ReportedCount,
  array_buffers_bytes: ReportedCount,
  workers: ReportedCount,
  workers_resident_bytes: ReportedCount,
})
export type ProcessMemory = z.infer<typeof ProcessMemory>

/** The scrub of a node. Files and bytes are those of the last completed pass. */
export const ScrubReport = z.strictObject({
  findings: ReportedCount,
  completed_at: Timestamp.nullable(),
  files: ReportedCount,
  read_bytes: ReportedCount,
})
export type ScrubReport = z.infer<typeof ScrubReport>
/** Commits of a node that a database has recorded. The number only grows, unless the database goes back to an older state. */
export const RecordedCommits = z.object({ database: Id, commits: ReportedCount })
export type RecordedCommits = z.infer<typeof RecordedCommits>

const ofEachProcess = {
  /** The epoch of the configuration in use. */
  applied_epoch: z.int(),
  /** The configuration that the process keeps, because it refuses that of control. `applied_epoch` is -1 then. */
  kept_position: DatabasePosition.optional(),
  /**
   * Numbers the heartbeats of a process, which names its run: control refuses one that comes after a later one. Missing from nodes of an earlier
   * release.
   */
  order: z.strictObject({ run: storableName, number: z.int().min(0) }).optional(),
}

export const Heartbeat = z.discriminatedUnion('process', [
  z.strictObject({
    process: z.literal('ingest'),
    node_id: Id,
    ...ofEachProcess,
    healthy: z.boolean(),
    /** Why the process is not healthy; of a healthy one, what else is wrong with the node. A single log that fails is in `blocked` instead. */
    reasons: z.array(Reason).max(reportLimits.reasonsMax),
    /** Whether it is not healthy for want of room: the disk is full, or the budget is used up. */
    disk_full: z.boolean(),
    /** Whether it was asked to stop: it accepts data until clients no longer find it, but gets no new clients. */
    leaving: z.boolean().optional(),
    /** Whether it has a copy store, for endpoints with two copies. A node of the release before acknowledges with one. */
    copy_store: z.boolean().optional(),
    blocked: boundedList(BlockedLog, reportLimits.logsMax),
    /** Now and then. */
    disk: z.strictObject({ free_bytes: ReportedCount, total_bytes: ReportedCount }).optional(),
  }),
  z.strictObject({
    process: z.literal('delivery'),
    node_id: Id,
    ...ofEachProcess,
    healthy: z.boolean(),
    reasons: z.array(Reason).max(reportLimits.reasonsMax),
    /** The longest time in the last minutes for which the event loop was held. */
    event_loop_delay_ms: z.number().min(0).optional(),
    /** The median and the 99th percentile of these times. */
    event_loop_delay_p50_ms: z.number().min(0).optional(),
    event_loop_delay_p99_ms: z.number().min(0).optional(),
    /** Processor time since the start of the process, user and system. */
    cpu_seconds: z.number().min(0).optional(),
    memory: ProcessMemory.optional(),
    /** Unless the scrub is off. */
    scrub: ScrubReport.optional(),
    /** Commits that control has not recorded, or whose segment is not removed, and how long the oldest of them has waited. */
    outbox: z.strictObject({ commits: ReportedCount, oldest_seconds: z.number().min(0) }).optional(),
    /** After control was out of reach, and once a minute: what the node remembers, for control to compare; null for nothing. */
    recorded: RecordedCommits.nullable().optional(),
    ...lagReport,
  }),
])
export type Heartbeat = z.infer<typeof Heartbeat>

/** Whether delivery has listed its logs since its start. Until then control keeps what the node reported before: it may be lost with the disk. */
export function hasReadDisk(heartbeat: Heartbeat): boolean {
  if (heartbeat.process !== 'delivery') return true
  const { applied_epoch, kept_position, healthy, lag } = heartbeat
  return applied_epoch >= 0 || lag.length > 0 || (kept_position !== undefined && healthy)
}

/** Time of control's clock, in milliseconds since 1970. Missing in responses of older versions. */
const ControlTime = z.number().optional()

export const HeartbeatRecorded = z.object({
  /**
   * Seconds until no client finds the node by DNS. Null while the installation manages DNS and the node is not leaving, or records still
   * name it. 0: it may stop at any time.
   */
  may_stop_in_seconds: z.number().min(0).nullable(),
  time: ControlTime,
  /** If the heartbeat has it: what the database has. */
  recorded: RecordedCommits.optional(),
})
export type HeartbeatRecorded = z.infer<typeof HeartbeatRecorded>

/** Tells whoever adopts the log of the node whether it still runs. Null before the first heartbeat. */
export const LastHeartbeat = z.object({ seconds_ago: z.number().min(0).nullable(), time: ControlTime })
export type LastHeartbeat = z.infer<typeof LastHeartbeat>

/** Usage that ingest counted for an account on one UTC day, since its start. Counters only grow. */
export const AccountUsage = z.strictObject({
  account_id: Id,
  day: z.iso.date(),
  bytes: ReportedCount,
  records: ReportedCount,
  /** Since the previous report about the account. */
  records_per_second: ReportedCount,
})
export type AccountUsage = z.infer<typeof AccountUsage>

/** Accounts in one report. Ingest reports the others in the next ones. */
export const usageAccountsMax = 2_000

export const UsageReport = z.strictObject({
  node_id: Id,
  /** Random, new at each start of ingest: its counters begin at 0 again. */
  run: z.string().min(1).max(32),
  /** Accounts whose counters changed since control last responded. */
  accounts: boundedList(AccountUsage, usageAccountsMax),
})
export type UsageReport = z.infer<typeof UsageReport>

export const UsageTotals = z.object({
  /** Nodes of the region whose ingest is healthy, at least 1. Rates per region are divided among them. */
  healthy_nodes: z.int().min(1),
  /** Bytes that all nodes of all regions accepted, for the accounts and days of the report. */
  accounts: z.array(z.object({ account_id: Id, day: z.iso.date(), bytes: z.int().min(0) })),
})
export type UsageTotals = z.infer<typeof UsageTotals>

/** Keys with which clients sent data lately, or are connected. */
export const KeyUseReport = z.strictObject({ node_id: Id, keys: boundedList(Id, keyLimits.reportedMax) })
export type KeyUseReport = z.infer<typeof KeyUseReport>

/** Keys of other regions, and unknown ones, are not counted. */
export const KeyUseRecorded = z.object({ recorded: z.int().min(0) })
export type KeyUseRecorded = z.infer<typeof KeyUseRecorded>
/** Buckets in one report. Ingest reports the others in the next ones. */
export const seriesItemsMax = 500

/** Counts since the previous report of ingest. Control adds them up, and recognizes a repeated report by its number. */
export const SeriesReport = z.strictObject({
  node_id: Id,
  /** Random, new at each start of ingest. */
  run: z.string().min(1).max(32),
  /** Increases within a run. A report is repeated with its number until control responds. */
  number: z.int().min(0),
  items: boundedList(IngestCounts.extend({ endpoint_id: Id, at: Timestamp }), seriesItemsMax),
})
export type SeriesReport = z.infer<typeof SeriesReport>

export const SeriesRecorded = z.object({ recorded: z.literal(true) })

/** Certificate that the nodes of a region serve. `certificate` of a snapshot says when there is another one. */
export const IssuedCertificate = z.object({
  fingerprint: z.string().max(100),
  /** PEM, the certificate for the region first. */
  chain: z.string(),
  /** PEM. */
  key: z.string(),
})
export type IssuedCertificate = z.infer<typeof IssuedCertificate>

export const CommitBatch = z.strictObject({
  commits: boundedList(SegmentCommit, 100).refine((commits) => commits.length > 0, 'must not be empty'),
})
export type CommitBatch = z.infer<typeof CommitBatch>

export const CommitsRecorded = z.object({
  /** Ids of the batch, all durable now. `new` of them were unknown before. */
  recorded: z.array(z.string()),
  new: z.int(),
  /** All commits of the node. Missing from control of an earlier release. */
  total: RecordedCommits.optional(),
})
export type CommitsRecorded = z.infer<typeof CommitsRecorded>

/** Asks which of these commits are recorded: a segment may reappear on a node after its commit. */
export const CommitLookup = z.strictObject({ ids: z.array(z.string().max(reportedTextMax)).min(1).max(100) })
export type CommitLookup = z.infer<typeof CommitLookup>

export const CommitsFound = z.object({
  /** `keys` has those of its files as they were delivered. Missing from control of an earlier release. */
  commits: z.array(z.object({ id: z.string(), records: z.int().min(0), keys: z.array(z.string()).optional() })),
  /** Whether the database may lack others. Missing from control of an earlier release. */
  may_lack: z.boolean().optional(),
  /** When the delivery process of the node last reported to this database (epoch ms). Missing from control of an earlier release. */
  reported_at: z.int().nullable().optional(),
})
export type CommitsFound = z.infer<typeof CommitsFound>

const SegmentOfLog = z.strictObject({ endpoint_id: Id, node_id: Id, seq: SegmentSeq })

/** Asks which of these segments are delivered. They may be of other nodes of the region: clients ask any of them. */
export const DeliveredLookup = z.strictObject({ segments: z.array(SegmentOfLog).min(1).max(deliveredLookupMax) })
export type DeliveredLookup = z.infer<typeof DeliveredLookup>

/**
 * `keys`: objects in the bucket that have the records. Segments that are not delivered, or not with all of their records, are left out, and those of
 * endpoints elsewhere.
 */
export const DeliveredFound = z.object({
  delivered: z.array(SegmentOfLog.extend({ commit_id: z.string(), keys: z.array(z.string()) })),
})
export type DeliveredFound = z.infer<typeof DeliveredFound>
