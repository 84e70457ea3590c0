import type { Db } from '../store.ts'

/** Adds which node delivers the copies of which lost one. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('take_overs')
    .addColumn('node_id', 'text', (column) => column.primaryKey())
    .addColumn('by_node_id', 'text', (column) => column.notNull())
    .addColumn('seen_at', 'bigint', (column) => column.notNull())
    .execute()
  await schema.createIndex('take_overs_by_node').on('take_overs').column('by_node_id').execute()
}
