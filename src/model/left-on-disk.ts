import { z } from 'zod'
import { boundedList } from './bounded-list.ts'
import { Id } from './id.ts'
import { ReportedCount } from './reported-count.ts'

/** A node that has more segments reports neighbours together. */
export const leftSegmentsMax = 20_000

/** Segments of one log that follow each other, normally one. */
export const LeftSegments = z.object({
  endpoint_id: Id,
  first_seq: ReportedCount,
  last_seq: ReportedCount,
  segments: ReportedCount,
  /** Null if one of them cannot be counted. */
  records: ReportedCount.nullable(),
  bytes: ReportedCount,
})
export type LeftSegments = z.infer<typeof LeftSegments>

/** All segments on the disk of a node whose place another machine has. */
export const LeftOnDisk = z.strictObject({ node_id: Id, segments: boundedList(LeftSegments, leftSegmentsMax) })
export type LeftOnDisk = z.infer<typeof LeftOnDisk>

/** `losses`: the number of endpoints with records that are nowhere else. */
export const LeftRecorded = z.object({ losses: z.int().min(0) })
export type LeftRecorded = z.infer<typeof LeftRecorded>
