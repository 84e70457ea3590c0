import { z } from 'zod'
import { SegmentCommit } from './commit.ts'
import { Region } from './endpoint.ts'
import { Id } from './id.ts'
import { Timestamp } from './timestamp.ts'

/**
 * The protocol between nodes and control, under `/internal/v1`. Every call carries `Authorization: Bearer <node token>`.
 *
 *   POST /internal/v1/register             Register    → 200 Registered
 *   POST /internal/v1/snapshot             SnapshotRequest → 200 sections, one JSON document per line (`snapshot-sections.ts`),
 *                                          or 204 if nothing changed within `wait_ms`
 *   GET  /internal/v1/committed-seqs       ?node_id= → 200 CommittedSeqs
 *   POST /internal/v1/heartbeat            Heartbeat   → 204
 *   POST /internal/v1/commits              CommitBatch → 200 CommitsRecorded. Idempotent.
 */
export const Register = z.strictObject({
  node_id: Id,
  region: Region,
  /** Addresses for DNS. */
  ipv4: z.array(z.ipv4()),
  ipv6: z.array(z.ipv6()),
  /** `host:port` where ingest listens, for installations without DNS. */
  ingest_address: z.string(),
})
export type Register = z.infer<typeof Register>

export const Registered = z.object({ epoch: z.int() })

/** Delivery lag of an endpoint on one node. */
export const EndpointLag = z.object({
  endpoint_id: Id,
  undelivered_segments: z.int().min(0),
  undelivered_bytes: z.int().min(0),
  /** When the oldest uncommitted segment was sealed. */
  oldest_sealed_at: Timestamp.nullable(),
  /** Why delivery is blocked, for the owner of the endpoint; null if it is not. */
  blocked_by: z.string().nullable(),
})
export type EndpointLag = z.infer<typeof EndpointLag>

export const Heartbeat = z.discriminatedUnion('process', [
  z.strictObject({
    process: z.literal('ingest'),
    node_id: Id,
    /** The epoch of the configuration in use. */
    applied_epoch: z.int(),
    healthy: z.boolean(),
    /** Why the process is not healthy. */
    reasons: z.array(z.string()),
  }),
  z.strictObject({
    process: z.literal('delivery'),
    node_id: Id,
    applied_epoch: z.int(),
    healthy: z.boolean(),
    reasons: z.array(z.string()),
    lag: z.array(EndpointLag),
  }),
])
export type Heartbeat = z.infer<typeof Heartbeat>

export const CommitBatch = z.strictObject({ commits: z.array(SegmentCommit).min(1).max(100) })
export type CommitBatch = z.infer<typeof CommitBatch>

export const CommitsRecorded = z.object({
  /** Ids of the batch, all durable now. `new` of them were unknown before. */
  recorded: z.array(z.string()),
  new: z.int(),
})
export type CommitsRecorded = z.infer<typeof CommitsRecorded>
