import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Keeps the credentials of removed nodes beside all others that a node had: their machines, too, may have delivered more, and hold more. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema.alterTable('adopted_credentials').renameTo('former_credentials').execute()
  await schema.alterTable('former_credentials').renameColumn('adopted_at', 'ended_at').execute()
  await schema.alterTable('former_credentials').addColumn('revoked_at', 'bigint').execute()
  await sql`insert into former_credentials (node_id, credential_hash, fence, ended_at, revoked_at)
    select id, credential_hash, 'node_removed', removed_at, credential_revoked_at from removed_nodes where true
    on conflict (node_id, credential_hash) do update set fence = excluded.fence, revoked_at = excluded.revoked_at`.execute(db)
  await schema.dropTable('removed_nodes').execute()
}
