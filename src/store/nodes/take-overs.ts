/**
 * Lost nodes, and the nodes that deliver their copies.
 *
 * Owns: a row for each takeover, also once it has ended: the node still has the credential of the lost one. Does not own: the credentials (node-credentials.ts).
 * Law: a lost node has one row. Of two nodes that ask at once, one gets it. The node that should take it over next is not the one that has it, until
 * it has begun. A node that loses its own place loses those that it has taken over, too.
 */
import { type ExpressionBuilder, sql } from 'kysely'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'

export type TakeOverKey = { readonly node_id: string; readonly by_node_id: string }

/** Notes who has the place of the lost node now. */
export async function noteTakeOver(db: Tx, { node_id, by_node_id }: TakeOverKey, now: number): Promise<void> {
  const taken = { by_node_id, seen_at: now, holder_node_id: by_node_id, ended_at: null }
  await db
    .insertInto('take_overs')
    .values({ node_id, ...taken })
    .onConflict((conflict) => conflict.column('node_id').doUpdateSet(taken))
    .execute()
}

/** The node still is at these. What it has stays its own, although another one should have taken it over meanwhile, and has not begun. */
export async function renewTakeOvers(db: Tx, by_node_id: string, nodeIds: readonly string[], now: number): Promise<void> {
  if (nodeIds.length === 0) return
  await db
    .updateTable('take_overs')
    .set({ by_node_id, seen_at: now })
    .where('node_id', 'in', nodeIds)
    .where('ended_at', 'is', null)
    .where((eb) => eb.or([eb('holder_node_id', '=', by_node_id), eb.and([eb('by_node_id', '=', by_node_id), isUnheard(eb)])]))
    .execute()
}

/** Returns the lost nodes that the node is, or should be, at. One that was heard of since, from its own machine or from the node that has it, is not lost. */
export async function listTakeOvers(db: Db, by_node_id: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('take_overs')
    .innerJoin('nodes', 'nodes.id', 'take_overs.node_id')
    .select('take_overs.node_id')
    .where('by_node_id', '=', by_node_id)
    .where('ended_at', 'is', null)
    .where((eb) => eb.or([eb('holder_node_id', '=', by_node_id), isUnheard(eb)]))
    .execute()
  return rows.map(({ node_id }) => node_id)
}

/** Whether nobody was heard under the id of the lost node since it was given away. */
function isUnheard({ not, exists, selectFrom }: ExpressionBuilder<Database, 'take_overs'>) {
  const heard = selectFrom('node_processes').select('process').whereRef('node_processes.node_id', '=', 'take_overs.node_id')
  return not(exists(heard.whereRef('node_processes.last_seen_at', '>=', 'take_overs.seen_at')))
}

/** Does nothing for a node that has not begun: another one may. */
export async function endTakeOver(db: Db, { node_id, by_node_id }: TakeOverKey, now: number): Promise<void> {
  await db
    .updateTable('take_overs')
    .set({ ended_at: now })
    .where(({ and }) => and({ node_id, holder_node_id: by_node_id }))
    .execute()
}

/**
 * Refuses what the node does in the place of lost ones, because its own credential is refused from now on, and what it took over in their names.
 * Another node may take them over. A lost one whose place it did not get yet keeps its own.
 */
export async function revokeTaken(db: Db, by_node_id: string, now: number): Promise<void> {
  const taken = sql<string>`(with recursive taken(id) as (
    select node_id from take_overs where holder_node_id = ${by_node_id}
    union select node_id from take_overs join taken on take_overs.holder_node_id = taken.id) select id from taken)`
  await db
    .updateTable('nodes')
    .set(({ fn, val }) => ({ credential_revoked_at: fn.coalesce('credential_revoked_at', val(now)) }))
    .where('id', 'in', taken)
    .execute()
}

/** The node is removed or its id released: nobody gets its place by its copies. */
export async function forgetTakeOver(db: Tx, node_id: string): Promise<void> {
  await db.deleteFrom('take_overs').where('node_id', '=', node_id).execute()
}

type Assignment = { readonly region: string; readonly by: string; readonly before: number; readonly confirmMs: number }

/** In place of a node that has a lost one, while it is only suspected to be lost. */
const nobody = ''

/**
 * Gives the node one of its region that had a copy store and is silent since `before` (epoch ms), or whose takeover stands still since then. One
 * that was shut down comes back. The first time it is only suspected: it is lost once it was not heard of for `confirmMs` after that.
 */
export async function assignLostNode(db: Tx, { region, by, before, confirmMs }: Assignment, now: number): Promise<void> {
  const silent = await db
    .selectFrom('nodes')
    .innerJoin('node_processes', 'node_processes.node_id', 'nodes.id')
    .leftJoin('take_overs', 'take_overs.node_id', 'nodes.id')
    .select(['nodes.id', 'nodes.credential_revoked_at', 'by_node_id', 'seen_at', 'holder_node_id'])
    .select(({ fn }) => fn.max('node_processes.last_seen_at').as('last_seen_at'))
    .select(({ fn }) => [fn.max('copy_store').as('copy_store'), fn.max('leaving').as('leaving')])
    .where('nodes.region', '=', region)
    .where('nodes.id', '!=', by)
    .where('nodes.credential_hash', 'is not', null)
    .where('nodes.registered_at', '<', before)
    .where('ended_at', 'is', null)
    .groupBy(['nodes.id', 'nodes.credential_revoked_at', 'by_node_id', 'seen_at', 'holder_node_id'])
    .having(({ fn }) => fn.max('node_processes.last_seen_at'), '<', before)
    .orderBy('nodes.id')
    .execute()
  for (const { id, credential_revoked_at, by_node_id, seen_at, holder_node_id, last_seen_at, copy_store, leaving } of silent) {
    // It was heard of since, and nobody had got its place.
    const isOver = holder_node_id === null && Number(seen_at) <= last_seen_at
    const isTaken = by_node_id !== null && by_node_id !== nobody && !isOver
    // A credential of one that is taken may be revoked, with the node that has it.
    const isOut = credential_revoked_at !== null || copy_store !== 1 || leaving === 1
    if (isTaken ? Number(seen_at) >= before : isOut) continue
    const isSuspected = by_node_id === nobody && !isOver
    if (isSuspected && now - Number(seen_at) < confirmMs) continue
    const taken = { by_node_id: isTaken || isSuspected ? by : nobody, seen_at: now }
    await db
      .insertInto('take_overs')
      .values({ node_id: id, ...taken })
      // Another node may have got it since it was read.
      .onConflict((conflict) =>
        conflict
          .column('node_id')
          .doUpdateSet(taken)
          .where('take_overs.seen_at', '=', seen_at ?? -1),
      )
      .execute()
    return
  }
}
