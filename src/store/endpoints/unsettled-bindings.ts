/**
 * Detached bindings that nodes may still need.
 *
 * Owns: the list of them, and dropping them from the sections. Does not own: when a binding is settled (control/status/settlement.ts).
 */
import type { ChangeTx } from '../cluster/epoch.ts'
import { touchEndpoint, touchViewUnlessNeeded } from '../cluster/section-versions.ts'
import type { Db } from '../store.ts'

export type UnsettledBinding = {
  readonly id: string
  readonly view_id: string
  readonly endpoint_id: string
  readonly region: string
  /** The epoch since which nodes know the endpoint. */
  readonly since_epoch: number
  readonly deactivated_at: number
  /** The epoch of the change that detached it. */
  readonly unsettled_epoch: number
}

/** Returns bindings of all accounts that were detached before `before` (epoch ms) and are not settled: those with an id above `after`, in order. */
export function listUnsettledBindings(db: Db, before: number, after: string, limit: number): Promise<UnsettledBinding[]> {
  return db
    .selectFrom('bindings')
    .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
    .select(['bindings.id', 'bindings.view_id', 'bindings.endpoint_id', 'bindings.deactivated_at', 'bindings.unsettled_epoch'])
    .select(['endpoints.region', 'endpoints.since_epoch'])
    .where('bindings.unsettled_epoch', 'is not', null)
    .where('bindings.deactivated_at', '<', before)
    .where('bindings.id', '>', after)
    .orderBy('bindings.id')
    .limit(limit)
    .$narrowType<{ deactivated_at: number; unsettled_epoch: number }>()
    .execute()
}

/** Drops bindings from the sections of their endpoints, and definitions that no node needs any more from those of views. */
export async function settleBindings(db: ChangeTx, bindings: readonly UnsettledBinding[]): Promise<void> {
  await db
    .updateTable('bindings')
    .set({ unsettled_epoch: null })
    .where(
      'id',
      'in',
      bindings.map(({ id }) => id),
    )
    .execute()
  for (const id of new Set(bindings.map(({ endpoint_id }) => endpoint_id))) await touchEndpoint(db, id)
  for (const { view_id, region } of bindings) await touchViewUnlessNeeded(db, view_id, region)
}
