import type { Db } from '../store.ts'

/** Adds the endpoints to which a key is limited, and when it was last used. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('api_keys').addColumn('endpoint_ids', 'text').execute()
  await schema.alterTable('api_keys').addColumn('last_used_at', 'bigint').execute()
}
