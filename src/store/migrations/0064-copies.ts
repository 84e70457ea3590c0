import type { Db } from '../store.ts'

/** Adds how many copies a record has before it is acknowledged, the default for endpoints that exist, and which nodes have a copy store. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('endpoints').addColumn('copies', 'bigint').execute()
  await schema
    .alterTable('node_processes')
    .addColumn('copy_store', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
}
