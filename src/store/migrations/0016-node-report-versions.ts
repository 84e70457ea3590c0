import type { Db } from '../store.ts'

/** Lets a node report only the logs that changed since the report that the database has. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('node_processes').addColumn('lag_version', 'text').execute()
}
