import { isDeepStrictEqual } from 'node:util'
import type { View } from '#model/view.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { touchEndpoint } from '../cluster/section-versions.ts'
import { fromJson } from '../columns.ts'
import { listEndpointsWithFigures, removeViewFigures } from '../series/view-figures.ts'
import type { Db } from '../store.ts'

/** Ends all shadows of a version. */
export async function removeShadowsOfView(db: ChangeTx, view_id: string): Promise<void> {
  const removed = await db.deleteFrom('shadows').where('view_id', '=', view_id).returning('endpoint_id').execute()
  for (const { endpoint_id } of removed) await touchEndpoint(db, endpoint_id)
}

export type OutdatedShadow = { readonly id: string; readonly endpoint_id: string; readonly endpoint_name: string }

/** Returns the shadows of a version by whether they run its present definition. */
async function listByDefinition(db: Db, { id, definition }: View) {
  const rows = await db
    .selectFrom('shadows')
    .innerJoin('endpoints', 'endpoints.id', 'shadows.endpoint_id')
    .select(['shadows.id', 'shadows.endpoint_id', 'endpoints.name as endpoint_name', 'shadows.definition'])
    .where('shadows.view_id', '=', id)
    .orderBy('endpoints.name')
    .execute()
  const { same = [], other = [] } = Object.groupBy(rows, (row) =>
    isDeepStrictEqual(fromJson(row.definition), definition) ? 'same' : 'other',
  )
  return { same, other }
}

/** Returns the shadows of a draft that run another definition than it has now. */
export async function listOutdatedShadows(db: Db, view: View): Promise<readonly OutdatedShadow[]> {
  return (await listByDefinition(db, view)).other
}

/**
 * Makes sure that all figures of a version that is published are of its definition: ends the shadows that run another one, and removes the
 * figures that may be of another one.
 */
export async function settleShadows(db: ChangeTx, view: View): Promise<void> {
  const { same, other } = await listByDefinition(db, view)
  for (const { id, endpoint_id } of other) {
    await db.deleteFrom('shadows').where('id', '=', id).execute()
    await touchEndpoint(db, endpoint_id)
  }
  const kept = new Set(same.map(({ endpoint_id }) => endpoint_id))
  const counted = await listEndpointsWithFigures(db, view.id)
  await removeViewFigures(
    db,
    view.id,
    counted.filter((endpoint_id) => !kept.has(endpoint_id)),
  )
}
