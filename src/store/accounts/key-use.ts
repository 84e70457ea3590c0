/**
 * When keys were last used.
 *
 * Law: a key is written at most once a minute. Nodes do not see it, so it makes no new epoch.
 */

import { minuteMs } from '#lib/time-units.ts'
import { inChunks } from '../chunks.ts'
import { listOwnAccounts } from '../cluster/node-scope.ts'
import type { Db } from '../store.ts'

/** Records that the keys were used at `now` (epoch ms). */
export async function recordKeyUse(db: Db, ids: readonly string[], now: number): Promise<void> {
  const minute = now - (now % minuteMs)
  // In one order, so that two processes which report the same keys do not wait for each other.
  for (const some of inChunks(ids.toSorted()))
    await db
      .updateTable('api_keys')
      .set({ last_used_at: minute })
      .where('id', 'in', some)
      .where(({ eb, or }) => or([eb('last_used_at', 'is', null), eb('last_used_at', '<', minute)]))
      .execute()
}

/** Returns those of the keys whose account has or had an endpoint in the regions of the node. */
export async function listOwnKeys(db: Db, node_id: string, ids: readonly string[]): Promise<readonly string[]> {
  const rows: { readonly id: string; readonly account_id: string }[] = []
  for (const some of inChunks(ids))
    rows.push(...(await db.selectFrom('api_keys').select(['id', 'account_id']).where('id', 'in', some).execute()))
  const accounts = await listOwnAccounts(
    db,
    node_id,
    rows.map(({ account_id }) => account_id),
  )
  return rows.flatMap(({ id, account_id }) => (accounts.has(account_id) ? [id] : []))
}
