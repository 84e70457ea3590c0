import { z } from 'zod'

/** Number of a segment in its log. Names of files and objects have twelve digits of it (docs/wal-format.md). */
export const SegmentSeq = z.int().min(0).max(999_999_999_999)
