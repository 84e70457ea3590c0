import type { Db } from '../store.ts'

/** Adds the setting of automatic compactions, and how far each endpoint got. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('endpoints').addColumn('compaction', 'text').execute()
  await schema.alterTable('endpoints').addColumn('compacted_until', 'bigint').execute()
}
