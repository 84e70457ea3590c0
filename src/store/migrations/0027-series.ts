import type { Db } from '../store.ts'

/** Creates the tables for what endpoints and views did over time. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('endpoint_series')
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('step', 'text', (column) => column.notNull())
    .addColumn('bucket_start', 'bigint', (column) => column.notNull())
    .addColumn('counts', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('endpoint_series_key', ['endpoint_id', 'step', 'bucket_start'])
    .execute()
  await schema.createIndex('endpoint_series_by_age').on('endpoint_series').columns(['step', 'bucket_start']).execute()
  await schema
    .createTable('view_series')
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('step', 'text', (column) => column.notNull())
    .addColumn('bucket_start', 'bigint', (column) => column.notNull())
    .addColumn('accepted', 'bigint', (column) => column.notNull())
    .addColumn('dropped', 'bigint', (column) => column.notNull())
    .addColumn('dlq', 'bigint', (column) => column.notNull())
    .addColumn('failed', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('view_series_key', ['view_id', 'step', 'bucket_start', 'endpoint_id'])
    .execute()
  await schema.createIndex('view_series_by_age').on('view_series').columns(['step', 'bucket_start']).execute()
  await schema
    .createTable('series_reports')
    .addColumn('node_id', 'text', (column) => column.primaryKey().references('nodes.id').onDelete('cascade'))
    .addColumn('run', 'text', (column) => column.notNull())
    .addColumn('number', 'bigint', (column) => column.notNull())
    .execute()
}
