/** Commits of one log, to compare with the segments that a machine has. */
import type { HeldSegments } from '#model/held-segments.ts'
import type { Db } from '../store.ts'
import type { Committed } from './loss-runs.ts'
import { uniteRuns } from './seq-runs.ts'

/** Returns the commits of these segments. What is between them is not read. */
export async function listCommitted(
  db: Db,
  { node_id, endpoint_id }: { readonly node_id: string; readonly endpoint_id: string },
  held: readonly HeldSegments[],
): Promise<readonly Committed[]> {
  const commits: Committed[] = []
  for (const [first, last] of uniteRuns(held.map(({ first_seq, last_seq }) => [first_seq, last_seq])))
    commits.push(
      ...(await db
        .selectFrom('commits')
        .select(['seq', 'records', 'wal_bytes'])
        .where(({ and }) => and({ node_id, endpoint_id }))
        .where('seq', '>=', first)
        .where('seq', '<=', last)
        .execute()),
    )
  return commits
}
