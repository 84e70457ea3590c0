import { z } from 'zod'
import { ArtifactFile, ArtifactFiles, ViewOutcome } from './commit.ts'
import { Definition } from './definition.ts'
import { DestinationTarget } from './destination.ts'
import { Id } from './id.ts'
import { jobLimits } from './limits.ts'
import { Timestamp } from './timestamp.ts'

/**
 * How nodes work off jobs, beside what `node-protocol.ts` has. A unit is one segment of one job; a lease is the right to work on it.
 *
 *   POST /internal/v1/jobs/lease    LeaseRequest  → 200 Leases. Renews what is held, gives back what is not, takes up to `max` more.
 *   POST /internal/v1/jobs/report   UnitReports   → 200 UnitsReported. Idempotent.
 */
export const LeaseRequest = z.strictObject({
  node_id: Id,
  /** New at every start of the process: what an earlier one held, it held when it died. */
  incarnation: z.string().max(64),
  max: z.int().min(0).max(jobLimits.leasesPerRequestMax),
  /** The leases that the process works on. */
  holding: z.array(Id).max(jobLimits.leasesPerNodeMax),
})
export type LeaseRequest = z.infer<typeof LeaseRequest>

/** What a unit is made from: `segment`, `parquet`, or `dlq`, the rows that version `from_version` refused. */
export const UnitSource = z.object({
  kind: z.enum(['segment', 'parquet', 'dlq']),
  artifact: ArtifactFile,
  from_version: z.int().nullable(),
})
export type UnitSource = z.infer<typeof UnitSource>

export const Unit = z.object({
  lease_id: Id,
  /** How long the lease is good unless it is renewed. */
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
  view: z.object({ id: Id, name: z.string(), version: z.int(), definition: Definition }),
  source: UnitSource,
  /** The bucket that the segment was committed to, and the prefix that it has there. */
  target: DestinationTarget,
})
export type Unit = z.infer<typeof Unit>

export const Leases = z.object({
  units: z.array(Unit),
  /** Of those held, the ones that are still good. */
  held: z.array(Id),
  /** There may be more to take at once. */
  more: z.boolean(),
})
export type Leases = z.infer<typeof Leases>

const reason = z.string().max(jobLimits.reasonCharsMax)
const unitName = { lease_id: Id, job_id: Id, commit_id: z.string() }

export const UnitReport = z.discriminatedUnion('outcome', [
  /** The artifacts and their marker are in the bucket. */
  z.strictObject({ ...unitName, outcome: z.literal('done'), artifacts: ArtifactFiles, view: ViewOutcome }),
  /** It would fail again. */
  z.strictObject({ ...unitName, outcome: z.literal('failed'), reason }),
  /** It may pass by itself. */
  z.strictObject({ ...unitName, outcome: z.literal('retry'), reason }),
  /** Nothing was wrong; the process stops. */
  z.strictObject({ ...unitName, outcome: z.literal('released') }),
])
export type UnitReport = z.infer<typeof UnitReport>

export const UnitReports = z.strictObject({
  node_id: Id,
  reports: z.array(UnitReport).min(1).max(jobLimits.leasesPerNodeMax),
})
export type UnitReports = z.infer<typeof UnitReports>

export const UnitsReported = z.object({
  /** `stale`: the lease was no longer good, and nothing was recorded. */
  results: z.array(z.object({ lease_id: Id, result: z.enum(['recorded', 'known', 'stale']) })),
})
export type UnitsReported = z.infer<typeof UnitsReported>
