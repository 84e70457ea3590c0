import type { Db } from '../store.ts'

/** Adds the losses with removed nodes, and what nodes report for them: the records and the seqs that they hold. */
export async function up({ schema }: Db): Promise<void> {
  for (const column of ['records', 'first_seq', 'last_seq'])
    await schema.alterTable('endpoint_lags').addColumn(column, 'bigint').execute()
  await schema
    .createTable('losses')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('node_id', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('first_seq', 'bigint')
    .addColumn('last_seq', 'bigint')
    .addColumn('segments', 'bigint', (column) => column.notNull())
    .addColumn('segments_missing', 'bigint', (column) => column.notNull())
    .addColumn('records', 'bigint')
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .addColumn('records_recovered', 'bigint', (column) => column.notNull())
    .addColumn('bytes_recovered', 'bigint', (column) => column.notNull())
    .addColumn('reported_at', 'bigint', (column) => column.notNull())
    .addColumn('recorded_at', 'bigint', (column) => column.notNull())
    .addColumn('recovered_at', 'bigint')
    .addColumn('confirmed_at', 'bigint')
    .addColumn('confirmed_by', 'text')
    .addForeignKeyConstraint('losses_endpoint', ['account_id', 'endpoint_id'], 'endpoints', ['account_id', 'id'])
    .execute()
  await schema.createIndex('losses_by_account').on('losses').columns(['account_id', 'recorded_at']).execute()
  await schema.createIndex('losses_by_segment').on('losses').columns(['endpoint_id', 'node_id']).execute()
  await schema.createIndex('losses_by_node').on('losses').columns(['node_id']).execute()
}
