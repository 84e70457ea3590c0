import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds the epoch of the revocation of a key, and when every node had applied it. Keys that were revoked before have neither. */
export async function up(db: Db): Promise<void> {
  for (const column of ['revocation_epoch', 'revocation_applied_at'])
    await db.schema.alterTable('api_keys').addColumn(column, 'bigint').execute()
  await sql`create index api_keys_not_applied on api_keys (revocation_epoch)
    where revocation_epoch is not null and revocation_applied_at is null`.execute(db)
}
