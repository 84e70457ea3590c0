/**
 * Places that an endpoint delivered to before its destination changed. A node that was cut off may have delivered there since.
 *
 * Law: what changes where an endpoint delivers calls `noteFormerPlaces` first, in its transaction.
 */
import { type Selectable, sql } from 'kysely'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'

export type FormerPlace = Selectable<Database['former_places']>

/** Notes where these endpoints deliver: one, or those of a destination. */
export async function noteFormerPlaces(
  db: Tx,
  { endpoint_id, destination_id }: { readonly endpoint_id?: string; readonly destination_id?: string },
  now: number,
): Promise<void> {
  let places = db
    .selectFrom('endpoints')
    .innerJoin('destinations', 'destinations.id', 'endpoints.destination_id')
    .select(['endpoints.id', 'destinations.id as destination_id', 'bucket', 'prefix', 'destinations.region'])
    .select(sql<number>`cast(${now} as bigint)`.as('replaced_at'))
  // The `where` is there in any case: without it SQLite reads `on conflict` as the condition of a join.
  places =
    endpoint_id === undefined
      ? places.where('destinations.id', '=', destination_id ?? '')
      : places.where('endpoints.id', '=', endpoint_id)
  await db
    .insertInto('former_places')
    .columns(['endpoint_id', 'destination_id', 'bucket', 'prefix', 'region', 'replaced_at'])
    .expression(places)
    .onConflict((conflict) =>
      conflict
        .columns(['endpoint_id', 'destination_id', 'bucket', 'prefix'])
        .doUpdateSet(({ ref }) => ({ region: ref('excluded.region'), replaced_at: ref('excluded.replaced_at') })),
    )
    .execute()
}

/** Returns where an endpoint delivered until `since` (epoch ms) or later, newest first. */
export function listFormerPlaces(db: Db, endpoint_id: string, since: number): Promise<FormerPlace[]> {
  return db
    .selectFrom('former_places')
    .selectAll()
    .where('endpoint_id', '=', endpoint_id)
    .where('replaced_at', '>=', since)
    .orderBy('replaced_at', 'desc')
    .execute()
}

/** Removes places that were replaced before `before` (epoch ms). */
export async function removePlacesReplacedBefore(db: Db, before: number): Promise<void> {
  await db.deleteFrom('former_places').where('replaced_at', '<', before).execute()
}
