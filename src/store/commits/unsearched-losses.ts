/** Losses that control has not looked for in the buckets yet: their segments may have been delivered, and not reported. */
import { inChunks } from '../chunks.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'

/** A loss as it was read. A later report of its machine puts it back. */
export type UnsearchedLoss = Pick<Database['losses'], 'id' | 'account_id' | 'endpoint_id' | 'reported_at'> & {
  /** Where its endpoint is. */
  readonly region: string
}

/** Returns the oldest open ones that were recorded and reported before a time (epoch ms), without those of some accounts. */
export async function listUnsearchedLosses(
  db: Db,
  { before, notOf, limit }: { readonly before: number; readonly notOf: readonly string[]; readonly limit: number },
): Promise<readonly UnsearchedLoss[]> {
  return db
    .selectFrom('losses')
    .innerJoin('endpoints', 'endpoints.id', 'losses.endpoint_id')
    .select(['losses.id', 'losses.account_id', 'losses.endpoint_id', 'losses.reported_at', 'endpoints.region'])
    .where('losses.searched_at', 'is', null)
    .where('losses.recovered_at', 'is', null)
    .where('losses.confirmed_at', 'is', null)
    .where('losses.recorded_at', '<=', before)
    .where('losses.reported_at', '<=', before)
    .$if(notOf.length > 0, (query) => query.where('losses.account_id', 'not in', notOf))
    .orderBy('losses.recorded_at')
    .limit(limit)
    .execute()
}

/** Notes that all markers were read since. */
export async function noteSearched(db: Db, losses: readonly UnsearchedLoss[], now: number): Promise<void> {
  for (const [reported_at, some] of Map.groupBy(losses, (loss) => loss.reported_at))
    for (const ids of inChunks(some.map(({ id }) => id)))
      await db
        .updateTable('losses')
        .set({ searched_at: now })
        .where('id', 'in', ids)
        .where('reported_at', '=', reported_at)
        .execute()
}
