import { noteMissingCommits } from '#store/commits/missing-commits.ts'
import type { Unreported } from '#store/nodes/node-credentials.ts'
import type { Tx } from '#store/store.ts'
import { controlLimits } from '../limits.ts'

/** Has control read the markers of the region, once the machine has certainly learned that it lost its place, and writes no more. */
export async function noteUnreported(db: Tx, unreported: Unreported | undefined, now: number): Promise<void> {
  if (unreported === undefined) return
  const { region, since } = unreported
  await noteMissingCommits(db, region, since, now, { isAutomatic: true, notBefore: now + controlLimits.fencedEndsMs })
}
