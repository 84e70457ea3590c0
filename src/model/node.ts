import { z } from 'zod'
import { isUuid } from '#lib/uuid.ts'
import { DatabasePosition } from './database-position.ts'
import { Id } from './id.ts'
import { nodeLimits } from './limits.ts'
import { properName } from './text.ts'
import { Timestamp } from './timestamp.ts'

/** Segments by state, and the bytes of all of them. */
export const SegmentTotals = z.object({
  open_segments: z.int().min(0),
  sealed_segments: z.int().min(0),
  parked_segments: z.int().min(0),
  quarantined_segments: z.int().min(0),
  bytes: z.int().min(0),
})
export type SegmentTotals = z.infer<typeof SegmentTotals>

/** The state of the endpoint that a log belongs to. `unknown`: this database never had it, for example after a restore. */
export const LogOwner = z.enum(['active', 'paused', 'draining', 'deleted', 'unknown'])
export type LogOwner = z.infer<typeof LogOwner>

export const NodeProcess = z.object({
  healthy: z.boolean().meta({ description: 'as the process last reported' }),
  reasons: z
    .array(z.string())
    .meta({ description: 'why it is not healthy; of a healthy process, what else is wrong with the node' }),
  applied_epoch: z.int().meta({ description: 'the configuration in use; -1 before the first' }),
  leaving: z
    .boolean()
    .meta({ description: 'only of ingest: it was asked to stop, and serves until clients no longer find the node by DNS' }),
  kept_position: DatabasePosition.nullable().meta({
    description:
      'null unless the process keeps this configuration and refuses that of control, whose database is an older copy or another one: see `inlet database`',
  }),
  last_seen_at: Timestamp,
})
export type NodeProcess = z.infer<typeof NodeProcess>

/** State of the credential with which a node calls control. `none`: the next node that registers under the id sets it. */
export const CredentialState = z.enum(['active', 'revoked', 'none'])
export type CredentialState = z.infer<typeof CredentialState>

/** Commands take a name where they take an id, so it must not look like one. */
const NodeName = properName(64).refine((name) => !isUuid(name), 'must not be a UUID')

export const ChangeNode = z.strictObject({
  name: NodeName.nullable().meta({
    description: 'unique in the installation, and part of the reasons that accounts read; null for none',
    examples: ['fra-1'],
  }),
})
export type ChangeNode = z.infer<typeof ChangeNode>

/** A node as the operator sees it. */
export const Node = z.object({
  id: Id,
  name: z.string().nullable().meta({ description: 'given by an operator, unique in the installation; null for none' }),
  region: z.string(),
  ipv4: z.array(z.string()),
  ipv6: z.array(z.string()),
  ingest_address: z.string(),
  registered_at: Timestamp,
  join_token_id: Id.nullable().meta({ description: 'the token with which the node last joined; null for the join secret' }),
  version: z.string().nullable().meta({ description: 'of the Inlet that the node runs; null for one that does not say so' }),
  disk: z
    .object({ free_bytes: z.int().min(0), total_bytes: z.int().min(0) })
    .nullable()
    .meta({ description: 'the disk with the write-ahead log, as of the last minutes; null before the first report' }),
  credential: CredentialState.meta({ description: '`none`: the next node that registers under the id sets it' }),
  healthy: z
    .boolean()
    .meta({ description: `both processes are healthy and have sent a heartbeat within ${nodeLimits.healthySeconds} seconds` }),
  ingest: NodeProcess.nullable().meta({ description: 'null before the first heartbeat' }),
  delivery: NodeProcess.nullable().meta({ description: 'null before the first heartbeat' }),
  segments: SegmentTotals.meta({ description: 'everything on the disk of the node, as delivery last reported it' }),
  unowned: SegmentTotals.meta({ description: 'the part of it whose endpoint was deleted or is unknown' }),
  blocked_logs: z.int().min(0).meta({ description: 'logs that ingest cannot append to, or not everything that it gets' }),
  scrub_findings: z.int().min(0).meta({
    description: 'damage that the scrub of the node knows of, on its disk or in buckets; `inlet scrub` lists it',
  }),
})
export type Node = z.infer<typeof Node>

/** Segments of one endpoint that a node holds. */
export const NodeLog = SegmentTotals.extend({
  endpoint_id: Id,
  endpoint_name: z.string().nullable().meta({ description: 'null for an unknown endpoint' }),
  account_id: Id.nullable().meta({ description: 'null for an unknown endpoint' }),
  owner: LogOwner,
  records: z.int().min(0).nullable().meta({
    description: 'acknowledged records of the open, sealed and parked segments; null if the node has not counted them',
  }),
  first_segment_seq: z.int().min(0).nullable().meta({
    description:
      '`segment_seq` of the receipts from which on these segments are; null if there are none, or the node does not say',
  }),
  oldest_sealed_at: Timestamp.nullable(),
  blocked_by: z.string().nullable().meta({ description: 'why delivery is blocked' }),
  append_blocked_by: z
    .string()
    .nullable()
    .meta({ description: 'why ingest refuses data of the log, or which file that it cannot recover holds back delivery' }),
  closed: z.boolean().meta({ description: 'ingest refuses further data, because the endpoint drains' }),
  scrub_findings: z.int().min(0).meta({ description: 'damage that the scrub of the node knows of' }),
  scrub_finding: z.string().nullable().meta({ description: 'the first of it' }),
})
export type NodeLog = z.infer<typeof NodeLog>

/** Data that the removal of a node abandons. */
export const NodeRemoval = z.object({
  node_id: Id,
  region: z.string(),
  reported_at: Timestamp.nullable().meta({
    description: 'as of when the counts are, by its last report about its disk; null if there is none',
  }),
  segments: SegmentTotals.meta({ description: 'everything that was on its disk and not delivered, as last reported' }),
  endpoints: z.int().min(0).meta({ description: 'the number of endpoints that it held data of' }),
  logs: z.array(NodeLog).meta({
    description: `what it held of each endpoint, those with the most bytes first; at most ${nodeLimits.removedLogsMax}`,
  }),
  losses: z.int().min(0).meta({
    description: 'losses that the removal recorded, one for each endpoint whose account has to confirm it; see `GET /v1/losses`',
  }),
  note: z.string().meta({ description: 'why its disk may hold something else than these counts say' }),
})
export type NodeRemoval = z.infer<typeof NodeRemoval>
