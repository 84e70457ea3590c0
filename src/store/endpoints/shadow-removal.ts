import type { ChangeTx } from '../cluster/epoch.ts'
import { touchEndpoint } from '../cluster/section-versions.ts'

/** Ends all shadows of a version. */
export async function removeShadowsOfView(db: ChangeTx, view_id: string): Promise<void> {
  const removed = await db.deleteFrom('shadows').where('view_id', '=', view_id).returning('endpoint_id').execute()
  for (const { endpoint_id } of removed) await touchEndpoint(db, endpoint_id)
}
