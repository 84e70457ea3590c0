import type { Db } from '../store.ts'

/** Adds when the files that a compaction merged are removed. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('compactions').addColumn('removing_since', 'bigint').execute()
  await schema.alterTable('compactions').addColumn('removed_at', 'bigint').execute()
}
