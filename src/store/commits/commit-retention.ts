/**
 * Removes what deliveries leave in the database, once it is older than it is kept.
 *
 * Owns: finding it by the index of each endpoint or node, a bounded number of rows at a time. Does not own: when (housekeeping.ts).
 * Law: the files in the buckets and the lifetime sums of views stay. The DLQ files and the additions of a commit go with it.
 */
import type { Db } from '../store.ts'

/** Returns ids of endpoints that ever had a commit, in order, from after `after` on. Empty behind the last one. */
export async function listCommittedEndpoints(db: Db, after: string, limit: number): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('commit_heads')
    .select('endpoint_id')
    .where('endpoint_id', '>', after)
    .orderBy('endpoint_id')
    .limit(limit)
    .execute()
  return rows.map(({ endpoint_id }) => endpoint_id)
}

/** Removes the oldest commits of an endpoint from before `before` (epoch ms), at most `limit`. Returns their number. */
export async function removeCommitsBefore(db: Db, endpoint_id: string, before: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('commits')
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('commits')
        .select('id')
        .where('endpoint_id', '=', endpoint_id)
        .where('uploaded_at', '<', before)
        .orderBy('uploaded_at')
        .limit(limit),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** Returns the next node after `after` that committed anything, and whether it is gone: removed, or silent since `before` (epoch ms). */
export async function findCommittingNode(
  db: Db,
  after: string,
  before: number,
): Promise<{ readonly id: string; readonly isGone: boolean } | undefined> {
  const row = await db
    .selectFrom('committed_seqs')
    .select('node_id')
    .where('node_id', '>', after)
    .orderBy('node_id')
    .limit(1)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const present = await db
    .selectFrom('nodes')
    .leftJoin('node_processes', 'node_processes.node_id', 'nodes.id')
    .select('nodes.id')
    .where('nodes.id', '=', row.node_id)
    .where(({ eb, or }) => or([eb('registered_at', '>=', before), eb('last_seen_at', '>=', before)]))
    .limit(1)
    .executeTakeFirst()
  return { id: row.node_id, isGone: present === undefined }
}

/** Removes committed seqs of a node that is gone, at most `limit`, and the number of its commits. Returns the number of seqs. */
export async function removeCommittedSeqs(db: Db, node_id: string, limit: number): Promise<number> {
  await db.deleteFrom('node_commits').where('node_id', '=', node_id).execute()
  const some = db.selectFrom('committed_seqs').select('endpoint_id').where('node_id', '=', node_id).limit(limit)
  const { numDeletedRows } = await db
    .deleteFrom('committed_seqs')
    .where('node_id', '=', node_id)
    .where('endpoint_id', 'in', some)
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
