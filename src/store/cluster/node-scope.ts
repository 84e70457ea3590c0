/**
 * Scope of a node: endpoints of the regions whose configuration it received, and accounts that have or had an endpoint there.
 *
 * Law: an id that this database does not know is nobody's, and is not foreign: the database may be an older copy.
 */
import { inChunks } from '../chunks.ts'
import { engineLimits } from '../engines/limits.ts'
import type { Db } from '../store.ts'

/** Returns those of the endpoints that are in other regions. */
export async function listForeignEndpoints(db: Db, node_id: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const foreign = new Set<string>()
  for (let start = 0; start < ids.length; start += engineLimits.insertRowsMax) {
    const rows = await db
      .selectFrom('endpoints')
      .select('id')
      .where('id', 'in', ids.slice(start, start + engineLimits.insertRowsMax))
      .where('region', 'not in', regionsOf(db, node_id))
      .execute()
    for (const { id } of rows) foreign.add(id)
  }
  return foreign
}

/** Returns those of the endpoints that are in the regions. */
export async function listOwnEndpoints(db: Db, node_id: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const own = new Set<string>()
  for (const some of inChunks(ids)) {
    const rows = await db
      .selectFrom('endpoints')
      .select('id')
      .where('id', 'in', some)
      .where('region', 'in', regionsOf(db, node_id))
      .execute()
    for (const { id } of rows) own.add(id)
  }
  return own
}

/** Returns those of the views whose account has no endpoint in the regions. */
export async function listForeignViews(db: Db, node_id: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db.selectFrom('views').select(['id', 'account_id']).where('id', 'in', ids).execute()
  const own = await listOwnAccounts(
    db,
    node_id,
    rows.map(({ account_id }) => account_id),
  )
  return new Set(rows.flatMap(({ id, account_id }) => (own.has(account_id) ? [] : [id])))
}

/** Returns those of the accounts that have or had an endpoint in the regions. */
export async function listOwnAccounts(db: Db, node_id: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db
    .selectFrom('accounts')
    .select('id')
    .where('id', 'in', [...new Set(ids)])
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('endpoints')
          .select('endpoints.id')
          .whereRef('endpoints.account_id', '=', 'accounts.id')
          .where('endpoints.region', 'in', regionsOf(db, node_id)),
      ),
    )
    .execute()
  return new Set(rows.map(({ id }) => id))
}

/** A node that moved still has data of the regions before. */
function regionsOf(db: Db, node_id: string) {
  return db
    .selectFrom('nodes')
    .select('region')
    .where('id', '=', node_id)
    .union(db.selectFrom('node_snapshots').select('region').where('node_id', '=', node_id))
}
