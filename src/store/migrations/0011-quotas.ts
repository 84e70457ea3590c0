import type { Db } from '../store.ts'

/** Gives accounts a weight and quotas, and counts what they send each day. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .alterTable('accounts')
    .addColumn('weight', 'integer', (column) => column.notNull().defaultTo(1))
    .execute()
  await schema.alterTable('accounts').addColumn('quotas', 'text').execute()

  // Without a reference to the account: a report that cannot be stored would fail all later ones of the node too.
  await schema
    .createTable('account_usage')
    .addColumn('day', 'text', (column) => column.notNull())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('node_id', 'text', (column) => column.notNull())
    .addColumn('run', 'text', (column) => column.notNull())
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .addColumn('records', 'bigint', (column) => column.notNull())
    .addColumn('records_per_second', 'bigint', (column) => column.notNull())
    .addColumn('reported_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('account_usage_key', ['day', 'account_id', 'node_id', 'run'])
    .execute()
}
