import type { Db } from '../store.ts'

/** Adds when the access of a revoked key was ended at once. Until now, that was always with the revocation. */
export async function up(db: Db): Promise<void> {
  await db.schema.alterTable('api_keys').addColumn('access_ended_at', 'bigint').execute()
  await db
    .updateTable('api_keys')
    .set(({ ref }) => ({ access_ended_at: ref('revoked_at') }))
    .where('revoked_at', 'is not', null)
    .execute()
}
