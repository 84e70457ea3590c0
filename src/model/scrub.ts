/**
 * Findings of a scrub, and how a node gets the list of files to verify, in addition to `node-protocol.ts`:
 *
 *   POST /internal/v1/scrub/endpoints      ScrubEndpointsRequest → 200 ScrubEndpoints
 *   POST /internal/v1/scrub/commits        ScrubCommitsRequest   → 200 ScrubCommits
 *   POST /internal/v1/scrub/known          ScrubKnownRequest     → 200 ScrubKnown
 */
import { z } from 'zod'
import { CompactedSource } from './compaction.ts'
import { DestinationTarget } from './destination.ts'
import { Id } from './id.ts'
import { reportedTextMax } from './limits.ts'
import { Timestamp } from './timestamp.ts'

export const scrubPageLimits = { endpointsMax: 50, commitsMax: 50, lookupsMax: 100 } as const

/** A file that must be in the bucket now. */
const ExpectedFile = z.object({ kind: z.string(), key: z.string(), bytes: z.int(), sha256: z.string() })
export type ExpectedFile = z.infer<typeof ExpectedFile>

/** A merged file of which the commit has the first rows, the key of its marker, and what that must list. */
const MergedFile = ExpectedFile.extend({
  id: z.string(),
  marker_key: z.string(),
  rows: z.int(),
  /** Sources whose commits are still in the database. */
  sources: z.array(CompactedSource),
})
export type MergedFile = z.infer<typeof MergedFile>

export const CommitToScrub = z.object({
  id: z.string(),
  node_id: Id,
  seq: z.int(),
  sealed_at: Timestamp,
  uploaded_at: Timestamp,
  /** Where its files are; null if the destination was deleted. */
  target: DestinationTarget.nullable(),
  files: z.array(ExpectedFile),
  merged: z.array(MergedFile),
})
export type CommitToScrub = z.infer<typeof CommitToScrub>

export const ScrubCommitsRequest = z.strictObject({ node_id: Id, endpoint_id: Id, after: Timestamp.nullable() })
export type ScrubCommitsRequest = z.infer<typeof ScrubCommitsRequest>
/** Oldest first. Fewer than a page: these were the last. */
export const ScrubCommits = z.object({ commits: z.array(CommitToScrub), is_last: z.boolean() })
export type ScrubCommits = z.infer<typeof ScrubCommits>

export const EndpointToScrub = z.object({
  id: Id,
  account_id: Id,
  /** Destinations of the account: the endpoint may have delivered to any of them. */
  targets: z.array(DestinationTarget),
})
export type EndpointToScrub = z.infer<typeof EndpointToScrub>

export const ScrubEndpointsRequest = z.strictObject({ node_id: Id, after: Id.nullable() })
export type ScrubEndpointsRequest = z.infer<typeof ScrubEndpointsRequest>
export const ScrubEndpoints = z.object({
  /** Endpoints that this node verifies, by id. */
  endpoints: z.array(EndpointToScrub),
  /** The `after` of the next page; null on the last. */
  next: Id.nullable(),
  /** Older commits are no longer in the database. */
  kept_since: Timestamp,
})
export type ScrubEndpoints = z.infer<typeof ScrubEndpoints>

/** Asks which of these commits and compactions of an endpoint are recorded, of any node. */
export const ScrubKnownRequest = z.strictObject({
  node_id: Id,
  endpoint_id: Id,
  ids: z.array(z.string().max(reportedTextMax)).max(scrubPageLimits.lookupsMax),
})
export type ScrubKnownRequest = z.infer<typeof ScrubKnownRequest>
export const ScrubKnown = z.object({ ids: z.array(z.string()) })
export type ScrubKnown = z.infer<typeof ScrubKnown>

export const FindingKind = z.enum([
  /** A segment on the node is damaged, and was not delivered yet. */
  'segment_damaged',
  /** A damaged original that was kept. */
  'segment_quarantined',
  /** A directory or file of the node cannot be read. */
  'unreadable',
  /** A file or directory that the node or the installation had is not there. */
  'missing',
  /** The outbox has a report that cannot be sent. */
  'report_damaged',
  /** A file of remembered idempotency keys. */
  'keys_damaged',
  /** A file of a commit is not in the bucket. */
  'file_missing',
  /** A file of a commit has other content. */
  'file_changed',
  'marker_missing',
  'marker_changed',
  /** The bucket has a marker of which the database has no commit. */
  'commit_missing',
])
export type FindingKind = z.infer<typeof FindingKind>

/** Fields have these names in the JSON that scripts read. */
export const Finding = z.object({
  kind: FindingKind,
  endpoint_id: z.string().nullable(),
  /** A path on the node, or bucket and key. */
  where: z.string(),
  message: z.string(),
  next_step: z.string(),
})
export type Finding = z.infer<typeof Finding>
