import type { Db } from '../store.ts'

/** Adds the HTTP headers that an endpoint keeps: none, for those that exist. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('endpoints').addColumn('kept_headers', 'text').execute()
}
