import type { Db } from '../store.ts'

/** Adds the origins of public keys. The keys that exist are not public. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('api_keys').addColumn('origins', 'text').execute()
}
