/** A segment file that nobody writes any more and that isn't sealed yet. */
import { join } from 'node:path'
import type { Files } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type SegmentIdentity, segmentName } from './segment-file.ts'

export type Orphan = SegmentIdentity & {
  readonly path: string
  /** Frames behind it were never acknowledged, where that is known. */
  readonly durableBytes?: number
  /**
   * The disk failed while it was written or synced. The kernel may take its bytes for written, so that another fdatasync would succeed
   * and prove nothing: what it holds has to be copied.
   */
  readonly isPoisoned: boolean
}

/** Marks it, in its name as well: then a recovery after a restart knows. Failing to rename it costs only that. */
export async function poison(files: Files, logger: Logger, directory: string, orphan: Orphan): Promise<Orphan> {
  if (orphan.isPoisoned) return orphan
  const path = join(directory, segmentName(orphan, 'poisoned'))
  const renamed = await files.rename(orphan.path, path).then(
    () => true,
    () => false,
  )
  logger.error({ log: orphan.logName, seq: orphan.seq, path: renamed ? path : orphan.path }, 'segment poisoned: the disk failed')
  return { ...orphan, path: renamed ? path : orphan.path, isPoisoned: true }
}
