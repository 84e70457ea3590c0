import type { Db } from '../store.ts'

/** Adds what an endpoint keeps of the senders of its records: nothing, for those that exist. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('endpoints').addColumn('kept_fields', 'text').execute()
}
