import { z } from 'zod'
import { boundedList } from './bounded-list.ts'
import { DatabasePosition } from './database-position.ts'
import { Id } from './id.ts'
import { commitLimits, reportedTextMax } from './limits.ts'
import { inQuery, PageLimit } from './page.ts'
import { adoptionPattern } from './patterns.ts'
import { ReportedCount } from './reported-count.ts'
import { SegmentSeq } from './segment-seq.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'
import { isComplete } from './view-metrics.ts'
import { ViewQuality } from './view-quality.ts'

/** A file created from a segment, as stored in the bucket. `key` is the whole object key, prefix included. */
export const ArtifactFile = z.object({
  key: z.string().max(commitLimits.keyCharsMax),
  bytes: ReportedCount,
  rows: ReportedCount,
  sha256: z.string().max(reportedTextMax),
  /** Only for files of a view. */
  view_id: Id.optional(),
  view_version: z.int().optional(),
})
export type ArtifactFile = z.infer<typeof ArtifactFile>

/** Files by their kind, as `printArtifactKind` writes it. The marker itself is listed in the commit only. */
export const ArtifactFiles = z.record(z.string().max(reportedTextMax), ArtifactFile)
export type ArtifactFiles = z.infer<typeof ArtifactFiles>

export function listKeys(files: ArtifactFiles): string[] {
  return Object.values(files).map(({ key }) => key)
}

/** The outcome of one view version for one segment. Law: processed = accepted + dropped + dlq + failed. */
export const ViewOutcome = z
  .object({
    view_id: Id,
    view_name: z.string().max(reportedTextMax),
    view_version: z.int(),
    processed: ReportedCount,
    accepted: ReportedCount,
    dropped: ReportedCount,
    dlq: ReportedCount,
    /** All records, if the view failed on the segment as a whole; otherwise 0. */
    failed: ReportedCount,
    /** Rows written, if the view expands an array: otherwise each accepted record is one. */
    rows: ReportedCount.optional(),
    /** Rows that were not written because one before them has their key; missing if there are none. */
    duplicates: ReportedCount.optional(),
    /** The window of `dedupe_within` for this segment, if the node had keys of a shorter time only. */
    window_seconds: ReportedCount.optional(),
    /** Values that became NULL because their cast failed. */
    cast_nulls: ReportedCount,
    /** DLQ rows by code, and failed records as `view_failed`. */
    errors: z.record(z.string().max(reportedTextMax), ReportedCount),
    /** One message as an example, or null. A longer one is cut: to reject the commit would stop the delivery of its endpoint. */
    last_error: z
      .object({
        code: z.string().max(reportedTextMax),
        message: z.string().overwrite((text) => text.slice(0, reportedTextMax)),
        at: Timestamp,
      })
      .nullable(),
    /** Missing if the view failed as a whole. */
    quality: ViewQuality.optional(),
    /** It was only counted, and has no files. */
    is_shadow: z.literal(true).optional(),
  })
  .refine(isComplete, 'processed must be accepted + dropped + dlq + failed')
export type ViewOutcome = z.infer<typeof ViewOutcome>

/** A delivered segment, as its node reports it and as its marker stores it. */
export const SegmentCommit = z.object({
  /** `<node>-<log>-<seq>`: a pure function of the segment, so that repeated reports are recognized. */
  id: z.string().max(reportedTextMax),
  endpoint_id: Id,
  node_id: Id,
  /** The incarnation of the log. */
  log: z.string().max(reportedTextMax),
  seq: SegmentSeq,
  records: ReportedCount,
  /** Acknowledged records of the segment that were lost to damage on the node: at least so many. Missing in commits from older nodes. */
  records_damaged: ReportedCount.default(0),
  wal_bytes: ReportedCount,
  /** When the first of its records was received. Missing in commits from older nodes. */
  first_received_at: Timestamp.optional(),
  sealed_at: Timestamp,
  uploaded_at: Timestamp,
  /** From the start of the build to the last upload. */
  duration_ms: ReportedCount,
  destination: z.object({ id: Id, bucket: z.string().max(commitLimits.keyCharsMax), region: z.string().max(reportedTextMax) }),
  artifacts: ArtifactFiles,
  views: boundedList(ViewOutcome, commitLimits.viewsMax),
  /** Id of the adoption of the log (`inlet node --adopt`) that delivered it. Missing if the node itself did. The keys of its files have it. */
  adoption: z.string().regex(adoptionPattern).optional(),
  /** Position of the configuration that it was delivered with. Missing if control did not report one. */
  position: DatabasePosition.optional(),
})
export type SegmentCommit = z.infer<typeof SegmentCommit>

/** Leaves out the quality of the last of very many views, so that control accepts the commit: their counts matter more. */
export function boundQuality(views: readonly ViewOutcome[]): ViewOutcome[] {
  return views.map(({ quality, ...counts }, index) =>
    quality === undefined || index >= commitLimits.measuredViewsMax ? counts : { ...counts, quality },
  )
}

/** Returns `<node>-<log>-<seq>`, with leading zeros in seq so that ids sort. */
export function commitId(nodeId: string, log: string, seq: number): string {
  return `${nodeId}-${log}-${String(seq).padStart(12, '0')}`
}

/** The rows of a file that a compaction removes, or has removed. */
const MovedTo = z.object({ key: z.string(), bytes: z.int(), sha256: z.string(), first_row: z.int(), rows: z.int() }).meta({
  description: 'set once the file is being removed: the merged file that has its rows, and which they are, counted from 0',
})

/** A commit as the API returns it. */
export const Commit = z.object({
  id: z.string(),
  node_id: Id,
  seq: z.int(),
  records: z.int(),
  /** Records that were acknowledged and then lost to damage on the node: at least so many. */
  records_damaged: z.int().min(0),
  wal_bytes: z.int(),
  duration_ms: z.int(),
  sealed_at: Timestamp,
  uploaded_at: Timestamp,
  bucket: z.string(),
  artifacts: z.record(
    z.string(),
    z.object({ key: z.string(), bytes: z.int(), sha256: z.string(), moved_to: MovedTo.optional() }),
  ),
})
export type Commit = z.infer<typeof Commit>

/** In answers that are made from commits. */
export const MayLackCommitsSince = Timestamp.nullable().meta({
  description:
    'null unless the database may lack commits, as after it went back to an older state: those since this time may be missing here, until control, or the operator with `inlet commits rebuild`, has recorded them. Their files are in the bucket',
})

/** A page of commits as the API returns it. */
export const CommitList = z.object({
  items: z.array(Commit),
  next_cursor: Timestamp.nullable().meta({ description: 'pass it as `before`; null on the last page' }),
  may_lack_commits_since: MayLackCommitsSince,
})
export type CommitList = z.infer<typeof CommitList>

/** Opaque, so that a request for anything else is 404. */
export const CommitId = z
  .string()
  .regex(/^[\w-]{1,200}$/)
  .meta({ description: '`id` of a commit', examples: ['4f8c1f0e-6a53-4c0e-9d3b-0000000000f1-k3v9x2m7q1-000000000042'] })

/** A commit with links to its files. */
export const CommitFiles = Commit.omit({ artifacts: true }).extend({
  files: z
    .array(
      z.object({
        kind: z.string().meta({ examples: ['parquet'] }),
        key: z.string(),
        bytes: z.int(),
        sha256: z.string().meta({ description: 'of the file, in hex' }),
        moved_to: MovedTo.optional(),
        download_url: z.string().nullable().meta({
          description:
            'of the file, or the one it was moved to; valid for one hour, needs no credentials; null if the destination was deleted or denies reading',
        }),
      }),
    )
    .meta({ description: 'also those that jobs added' }),
})
export type CommitFiles = z.infer<typeof CommitFiles>

const segmentPair = 'node_id and segment_seq go together: take both from the receipt'

export const CommitsQuery = z
  .strictObject({
    limit: PageLimit,
    before: TimestampInput.optional(),
    node_id: Id.optional().meta({ description: 'with `segment_seq`: only the commit of this receipt' }),
    segment_seq: inQuery(z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional()).meta({
      description: 'with `node_id`: only the commit of this receipt; no items until its segment is delivered',
    }),
  })
  .refine(({ node_id, segment_seq }) => node_id === undefined || segment_seq !== undefined, {
    path: ['segment_seq'],
    message: segmentPair,
  })
  .refine(({ node_id, segment_seq }) => segment_seq === undefined || node_id !== undefined, {
    path: ['node_id'],
    message: segmentPair,
  })
export type CommitsQuery = z.infer<typeof CommitsQuery>
