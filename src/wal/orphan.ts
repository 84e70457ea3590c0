/** A segment file that is no longer written to and not sealed yet. */
import { join } from 'node:path'
import type { Files } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type SegmentIdentity, segmentName } from './segment-file.ts'

export type Orphan = SegmentIdentity & {
  readonly path: string
  /** Frames beyond it were never acknowledged. Absent if that is not known. */
  readonly durableBytes?: number
  /**
   * The disk failed while it was written or synced. The kernel may believe that its bytes are on disk: another fdatasync would succeed and
   * prove nothing. So its frames have to be copied.
   */
  readonly isPoisoned: boolean
}

/** Marks it as poisoned, also in its name, for a recovery after a restart. If the rename fails, only that is lost. */
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
