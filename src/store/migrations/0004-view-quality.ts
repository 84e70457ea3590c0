import type { Db } from '../store.ts'

/** Creates the table for column quality and unmapped paths. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('view_quality')
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('bucket_start', 'bigint', (column) => column.notNull())
    .addColumn('quality', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('view_quality_key', ['view_id', 'endpoint_id', 'bucket_start'])
    .execute()
  await schema.createIndex('view_quality_by_age').on('view_quality').column('bucket_start').execute()
}
