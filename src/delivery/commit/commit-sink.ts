import type { SegmentName } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { Bucket } from '../bucket.ts'
import type { DeliveryTarget } from '../delivery-run.ts'

/** A segment whose files are all in the bucket, in its turn within its log. */
export type FinishedSegment = {
  /** Lists every file by its kind with key, bytes, rows and SHA-256, the marker included, and the outcome of each view. */
  readonly commit: SegmentCommit
  readonly segment: SegmentName
  /** Where the files are: bucket, prefix, key for encryption, and the role to reach them. */
  readonly target: DeliveryTarget
  /** Sends requests to that bucket. They wait during an outage of the destination, and their failures are recorded. */
  readonly bucket: Bucket
  /** An earlier run wrote the marker: this commit was read from it. */
  readonly isAdopted: boolean
  readonly signal: AbortSignal
}

/**
 * Records finished segments somewhere: the marker in the bucket and the outbox to control are sinks, a table format would be another.
 *
 * What the committer guarantees:
 * - Sinks are called one after the other, in the order in which they are listed, and each only after the one before has resolved.
 * - Segments of a log come in order of seq. Segments of different logs come at the same time.
 * - Every listed file was in the bucket right before the first sink was called. Its bytes never change after that.
 * - If a sink throws, everything from that check on is retried, for ever and with back-off. It may be another destination by then, with
 *   the same `commit.id` and other keys. After a crash the segment is delivered or adopted again, so that every sink is called again.
 *
 * What a sink must guarantee:
 * - It is durable when it resolves: nothing calls it again after that.
 * - It is idempotent by `commit.id`. A table format keeps the ids that it has added, e.g. in the properties of its snapshots, or looks
 *   for the keys among its data files.
 * - It needs only what is in the bucket: local files may be gone, and an adopted segment never had any in this process.
 * - It does not change or remove listed files.
 *
 * The marker comes first, because readers go by it alone. The outbox comes last: a segment whose commit is in the outbox is not delivered
 * again and is removed from the log once control has recorded it, so that a sink behind the outbox could miss it. A table format belongs
 * between the two. What jobs add to a segment later has a marker of its own and does not come through here (jobs/unit-run.ts).
 */
export interface CommitSink {
  readonly name: string
  record(finished: FinishedSegment): Promise<void>
}
