import type { Db } from '../store.ts'

/** Gives each node a credential of its own. Null: no credential, so the next node that registers under the id sets one. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('nodes').addColumn('credential_hash', 'text').execute()
  await schema.alterTable('nodes').addColumn('credential_revoked_at', 'bigint').execute()
}
