import type { Tx } from '../store.ts'

/** Removes all figures of a version on these endpoints, so that its counts begin at zero there. */
export async function removeViewFigures(db: Tx, view_id: string, endpoint_ids: readonly string[]): Promise<void> {
  if (endpoint_ids.length === 0) return
  for (const table of ['view_counters', 'view_totals', 'view_quality', 'view_series'] as const)
    await db.deleteFrom(table).where('view_id', '=', view_id).where('endpoint_id', 'in', endpoint_ids).execute()
}

/** Returns the endpoints on which a version has figures. */
export async function listEndpointsWithFigures(db: Tx, view_id: string): Promise<readonly string[]> {
  const rows = await db.selectFrom('view_totals').select('endpoint_id').where('view_id', '=', view_id).execute()
  return rows.map(({ endpoint_id }) => endpoint_id)
}
