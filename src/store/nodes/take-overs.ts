/**
 * Lost nodes, and the nodes that deliver their copies.
 *
 * Owns: a row for each takeover that has not ended. Does not own: the credentials (node-credentials.ts).
 * Law: a lost node has one row. Of two nodes that ask at once, one gets it.
 */
import type { Db, Tx } from '../store.ts'

export type TakeOverKey = { readonly node_id: string; readonly by_node_id: string }

/** Notes who has the lost node now. */
export async function noteTakeOver(db: Tx, { node_id, by_node_id }: TakeOverKey, now: number): Promise<void> {
  const taken = { by_node_id, seen_at: now }
  await db
    .insertInto('take_overs')
    .values({ node_id, ...taken })
    .onConflict((conflict) => conflict.column('node_id').doUpdateSet(taken))
    .execute()
}

/** The node still is at these. */
export async function renewTakeOvers(db: Tx, by_node_id: string, nodeIds: readonly string[], now: number): Promise<void> {
  if (nodeIds.length === 0) return
  await db
    .updateTable('take_overs')
    .set({ seen_at: now })
    .where('by_node_id', '=', by_node_id)
    .where('node_id', 'in', nodeIds)
    .execute()
}

/** Returns the lost nodes that the node has. */
export async function listTakeOvers(db: Db, by_node_id: string): Promise<readonly string[]> {
  const rows = await db.selectFrom('take_overs').select('node_id').where('by_node_id', '=', by_node_id).execute()
  return rows.map(({ node_id }) => node_id)
}

export async function endTakeOver(db: Db, { node_id, by_node_id }: TakeOverKey): Promise<void> {
  await db
    .deleteFrom('take_overs')
    .where(({ and }) => and({ node_id, by_node_id }))
    .execute()
}

type Assignment = { readonly region: string; readonly by: string; readonly before: number }

/**
 * Gives the node one of its region that had a copy store and is silent since `before` (epoch ms), or whose takeover stands still since then. One
 * that was shut down comes back.
 */
export async function assignLostNode(db: Tx, { region, by, before }: Assignment, now: number): Promise<void> {
  const lost = await db
    .selectFrom('nodes')
    .innerJoin('node_processes', 'node_processes.node_id', 'nodes.id')
    .leftJoin('take_overs', 'take_overs.node_id', 'nodes.id')
    .select('nodes.id')
    .where('nodes.region', '=', region)
    .where('nodes.id', '!=', by)
    .where('nodes.credential_hash', 'is not', null)
    .where('nodes.credential_revoked_at', 'is', null)
    .where('nodes.registered_at', '<', before)
    .where('node_processes.process', '=', 'ingest')
    .where('node_processes.last_seen_at', '<', before)
    .where(({ eb, or, and }) =>
      or([
        eb('take_overs.seen_at', '<', before),
        and([
          eb('take_overs.node_id', 'is', null),
          eb('node_processes.copy_store', '=', 1),
          eb('node_processes.leaving', '=', 0),
        ]),
      ]),
    )
    .orderBy('nodes.id')
    .limit(1)
    .executeTakeFirst()
  if (lost === undefined) return
  const taken = { by_node_id: by, seen_at: now }
  await db
    .insertInto('take_overs')
    .values({ node_id: lost.id, ...taken })
    .onConflict((conflict) => conflict.column('node_id').doUpdateSet(taken).where('take_overs.seen_at', '<', before))
    .execute()
}
