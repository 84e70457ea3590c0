import type { Db } from '../store.ts'

/** Usage of callers' rate limits, for control processes that share a database. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('rate_windows')
    .addColumn('caller', 'text', (column) => column.primaryKey())
    .addColumn('allowed', 'integer', (column) => column.notNull())
    .addColumn('ends_at', 'bigint', (column) => column.notNull())
    .addColumn('taken', 'integer', (column) => column.notNull())
    .addColumn('granted', 'integer', (column) => column.notNull())
    .execute()
  await schema.createIndex('rate_windows_by_end').on('rate_windows').column('ends_at').execute()
}
