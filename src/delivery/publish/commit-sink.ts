import type { SegmentName } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { DeliveryTarget } from '../segments/delivery-run.ts'
import type { Bucket } from './bucket.ts'

/** A segment whose files are all in the bucket, in its turn within its log. */
export type FinishedSegment = {
  /** Lists every file by its kind with key, bytes, rows and SHA-256, the marker included, and the outcome of each view. */
  readonly commit: SegmentCommit
  readonly segment: SegmentName
  /** Where the files are: bucket, prefix, key for encryption, and the role to reach them. */
  readonly target: DeliveryTarget
  /** Sends requests to that bucket. They wait during an outage of the destination, and their failures are recorded. */
  readonly bucket: Bucket
  /** `adopted`: it is in the bucket, and this commit was read from it. `replacing`: the one in the bucket, if any, is not a commit. */
  readonly marker: 'new' | 'replacing' | 'adopted'
  readonly signal: AbortSignal
}

/**
 * Records finished segments somewhere: the marker in the bucket and the outbox to control are sinks, a table format would be another.
 *
 * The committer guarantees:
 * - Sinks are called one after the other, in the order in which they are listed, and each only after the one before has resolved.
 * - Segments of a log come in order of seq. Segments of different logs come at the same time.
 * - Every listed file was in the bucket right before its marker was written, and the marker right after. Their bytes never change after that.
 * - If a sink throws, every sink is called again, for ever, with back-off. The destination may have changed by then; `commit.id` stays the
 *   same, but the keys differ. After a crash the segment is delivered or adopted again, and every sink is called again.
 *
 * A sink must guarantee:
 * - Its record is durable when it resolves, because it is not called again after that.
 * - It is idempotent by `commit.id`. A table format keeps the ids that it has added, e.g. in the properties of its snapshots, or looks
 *   for the keys among its data files.
 * - It needs only what is in the bucket: local files may be gone, and an adopted segment never had any in this process.
 * - It does not change or remove listed files.
 *
 * The marker is first, because readers rely on it alone. The outbox is last: a segment whose commit is in the outbox is not delivered again,
 * and is removed from the log once control has recorded it. A sink after the outbox could miss it. A table format belongs between the two.
 * Files that jobs add to a segment later have their own marker and do not use sinks (jobs/unit-run.ts).
 */
export interface CommitSink {
  readonly name: string
  record(finished: FinishedSegment): Promise<void>
}
