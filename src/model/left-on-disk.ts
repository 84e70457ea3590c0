import { z } from 'zod'
import { boundedList } from './bounded-list.ts'
import { HeldSegments } from './held-segments.ts'
import { Id } from './id.ts'

/** A node that has more segments sends several reports: each adds to what control knows. */
export const leftSegmentsMax = 20_000

/** Segments of one log with all seqs from the first to the last, normally one. Commits of other seqs must not count for them. */
export const LeftSegments = HeldSegments.extend({ endpoint_id: Id }).refine(
  ({ first_seq, last_seq, segments }) => segments > 0 && segments === last_seq - first_seq + 1,
  {
    path: ['segments'],
    error: 'must be one segment for each seq from first_seq to last_seq',
  },
)
export type LeftSegments = z.infer<typeof LeftSegments>

/** Segments on the disk of a machine that lost its place. */
export const LeftOnDisk = z.strictObject({ node_id: Id, segments: boundedList(LeftSegments, leftSegmentsMax) })
export type LeftOnDisk = z.infer<typeof LeftOnDisk>

/** `losses`: the number of endpoints with records that are nowhere else. */
export const LeftRecorded = z.object({ losses: z.int().min(0) })
export type LeftRecorded = z.infer<typeof LeftRecorded>
