import type { Db } from '../store.ts'

/** Adds which Inlet a node runs, and the room on its disk. Null before it says so. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('nodes').addColumn('version', 'text').execute()
  await schema.alterTable('nodes').addColumn('disk_free_bytes', 'bigint').execute()
  await schema.alterTable('nodes').addColumn('disk_total_bytes', 'bigint').execute()
}
