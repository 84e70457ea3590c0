import type { Db } from '../store.ts'

/** Records which removed nodes had a revoked credential: that does not open anything again. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('removed_nodes').addColumn('credential_revoked_at', 'bigint').execute()
}
