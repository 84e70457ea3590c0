import { z } from 'zod'
import { boundedList } from './bounded-list.ts'
import { ArtifactFile, ArtifactFiles, ViewOutcome } from './commit.ts'
import { CompactedSource } from './compaction.ts'
import { SentView } from './definition.ts'
import { DestinationTarget } from './destination.ts'
import { Id } from './id.ts'
import { jobLimits, reportedTextMax } from './limits.ts'
import { ReportedCount } from './reported-count.ts'
import { Timestamp } from './timestamp.ts'

/**
 * How nodes run jobs, in addition to `node-protocol.ts`. A unit is one segment of one job, or one new file of a compaction: to make it, or to remove what it replaces. A lease is the right to work on it.
 *
 *   POST /internal/v1/jobs/lease    LeaseRequest  → 200 Leases. Renews the named leases, returns the node's others, and leases up to `max` more units.
 *   POST /internal/v1/jobs/report   UnitReports   → 200 UnitsReported. Idempotent.
 */
export const LeaseRequest = z.strictObject({
  node_id: Id,
  /** New at each start of the process. A unit leased to an earlier incarnation was running when that process crashed. */
  incarnation: z.string().max(64),
  max: z.int().min(0).max(jobLimits.leasesPerRequestMax),
  /** Leases of the units that are running. */
  holding: z.array(Id).max(jobLimits.leasesPerNodeMax),
})
export type LeaseRequest = z.infer<typeof LeaseRequest>

/** The file that a unit reads: `segment`, `parquet`, or `dlq`, the DLQ rows of version `from_version`. */
export const UnitSource = z.object({
  kind: z.enum(['segment', 'parquet', 'dlq']),
  artifact: ArtifactFile,
  from_version: z.int().nullable(),
  /** The segment's file was merged into this one: its rows are those from this on, counted from 0, and `artifact.rows` is their number. */
  first_row: z.int().optional(),
})
export type UnitSource = z.infer<typeof UnitSource>

export const Unit = z.object({
  lease_id: Id,
  /** How long the lease is valid unless it is renewed. */
  lease_ms: z.int(),
  job_id: Id,
  account_id: Id,
  commit: z.object({
    id: z.string(),
    endpoint_id: Id,
    node_id: Id,
    log: z.string(),
    seq: z.int(),
    sealed_at: Timestamp,
  }),
  view: SentView,
  source: UnitSource,
  /** The bucket and the prefix that the segment was committed to. */
  target: DestinationTarget,
})
export type Unit = z.infer<typeof Unit>

/** A file that a compaction reads. `id` is that of the marker that lists it, which also says its key. */
export const SourceOfCompaction = CompactedSource.extend({ bytes: z.int(), sha256: z.string() })

/** One new file of a compaction. */
export const CompactionUnit = z.object({
  lease_id: Id,
  lease_ms: z.int(),
  job_id: Id,
  account_id: Id,
  compaction: z.object({
    id: z.string(),
    endpoint_id: Id,
    kind: z.string(),
    /** The UTC date on which all sources were sealed. */
    date: z.string(),
    view: z.object({ id: Id, version: z.int() }).nullable(),
    /** In the order of their rows. */
    sources: z.array(SourceOfCompaction),
  }),
  /** The bucket and the prefix that the segments were committed to. */
  target: DestinationTarget,
})
export type CompactionUnit = z.infer<typeof CompactionUnit>

/** Removes the sources of a compaction. */
export const RemovalUnit = CompactionUnit.omit({ compaction: true }).extend({
  removal: CompactionUnit.shape.compaction.extend({ file: ArtifactFile }),
})
export type RemovalUnit = z.infer<typeof RemovalUnit>

export const JobUnit = z.union([Unit, CompactionUnit, RemovalUnit])
export type JobUnit = z.infer<typeof JobUnit>

export const Leases = z.object({
  units: z.array(JobUnit),
  /** The named leases that are still valid. */
  held: z.array(Id),
  /** More units may be available right now. */
  more: z.boolean(),
})
export type Leases = z.infer<typeof Leases>

const reason = z.string().max(jobLimits.reasonCharsMax)
/** `commit_id` is the id of the compaction, if the unit is one. */
const unitName = { lease_id: Id, job_id: Id, commit_id: z.string().max(reportedTextMax) }

export const UnitReport = z.discriminatedUnion('outcome', [
  /** The artifacts and their marker are in the bucket. */
  z.strictObject({ ...unitName, outcome: z.literal('done'), artifacts: ArtifactFiles, view: ViewOutcome }),
  /** The new file and its marker are in the bucket. */
  z.strictObject({ ...unitName, outcome: z.literal('compacted'), file: ArtifactFile }),
  /** The files that the compaction merged are not in the bucket. */
  z.strictObject({ ...unitName, outcome: z.literal('removed') }),
  /** A retry would fail too. `records` have no outcome because the view failed as a whole; 0 if something else failed. */
  z.strictObject({ ...unitName, outcome: z.literal('failed'), reason, records: ReportedCount }),
  /** A retry may succeed. */
  z.strictObject({ ...unitName, outcome: z.literal('retry'), reason }),
  /** The process is stopping. */
  z.strictObject({ ...unitName, outcome: z.literal('released') }),
])
export type UnitReport = z.infer<typeof UnitReport>

export const UnitReports = z.strictObject({
  node_id: Id,
  reports: boundedList(UnitReport, jobLimits.leasesPerNodeMax).refine((reports) => reports.length > 0, 'must not be empty'),
})
export type UnitReports = z.infer<typeof UnitReports>

export const UnitsReported = z.object({
  /** `stale`: the lease was no longer valid, and nothing was recorded. */
  results: z.array(z.object({ lease_id: Id, result: z.enum(['recorded', 'known', 'stale']) })),
})
export type UnitsReported = z.infer<typeof UnitsReported>
