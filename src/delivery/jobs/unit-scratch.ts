/** Runs a unit in a directory of its own, and says how it ended. */
import { join } from 'node:path'
import type { Files } from '#lib/files.ts'
import type { UnitReport } from '#model/job-protocol.ts'
import { jobLimits } from '#model/limits.ts'
import { firstLine, UnitViewFailed } from '../convert/build/failures.ts'
import { isTransient } from '../convert/build/transient-error.ts'

export type UnitScratch = {
  /** Where the directories of units are. */
  readonly scratch: string
  readonly files: Files
}

type LeaseIds = 'lease_id' | 'job_id' | 'commit_id'
export type UnitEnd = UnitReport extends infer Report ? (Report extends unknown ? Omit<Report, LeaseIds> : never) : never

/** Throws only the signal's reason. */
export async function runInScratch(
  { scratch, files }: UnitScratch,
  signal: AbortSignal,
  run: (directory: string) => Promise<UnitEnd>,
): Promise<UnitEnd> {
  let directory: string | undefined
  try {
    directory = await files.makeTemporaryDirectory(join(scratch, 'job-'))
    return await run(directory)
  } catch (error) {
    signal.throwIfAborted()
    const reason = firstLine(error).slice(0, jobLimits.reasonCharsMax)
    if (isTransient(error)) return { outcome: 'retry', reason }
    return { outcome: 'failed', reason, records: error instanceof UnitViewFailed ? error.records : 0 }
  } finally {
    // A directory that stays is removed at the next start.
    if (directory !== undefined) await files.removeTree(directory).catch(() => undefined)
  }
}
