/** A segment file that is no longer written to but is not sealed yet. */
import { join } from 'node:path'
import type { Files } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { SegmentRef } from '../../segment-source.ts'
import { segmentName } from '../format/segment-file.ts'

export type Orphan = SegmentRef & {
  readonly path: string
  /** Frames beyond it were never acknowledged. Absent if unknown. */
  readonly durableBytes?: number
  /** Lower bound of what was acknowledged in it. */
  readonly acknowledged?: { readonly bytes: number; readonly records: number }
  /**
   * The disk failed while it was written or synced. The kernel may believe that its bytes are on disk, so another fdatasync would succeed
   * and prove nothing. Its frames must be copied.
   */
  readonly isPoisoned: boolean
  /** An earlier process left it, and not all of its frames were read since. Absent if this process wrote it. */
  readonly isUnread?: boolean
  /** Why the last attempt to recover it failed, and what to do. Absent before the first attempt. */
  readonly problem?: string
}

/** Marks the orphan as poisoned, also in its file name for a recovery after a restart. A failed rename loses only the mark in the name. */
export async function poison(files: Files, logger: Logger, directory: string, orphan: Orphan): Promise<Orphan> {
  if (orphan.isPoisoned) return orphan
  const path = join(directory, segmentName(orphan, 'poisoned'))
  const renamed = await files.rename(orphan.path, path).then(
    () => true,
    () => false,
  )
  logger.error({ log: orphan.logName, seq: orphan.seq, path: renamed ? path : orphan.path }, 'segment poisoned')
  return { ...orphan, path: renamed ? path : orphan.path, isPoisoned: true }
}
