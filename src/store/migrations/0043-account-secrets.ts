import type { Db } from '../store.ts'

/** Adds secrets of accounts, and which versions of views name them. The name of one that was deleted stays with drafts. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('account_secrets')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('key_id', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('rotated_at', 'bigint')
    .addUniqueConstraint('account_secrets_by_name', ['account_id', 'name'])
    .execute()
  await schema
    .createTable('view_secrets')
    .addColumn('view_id', 'text', (column) => column.notNull().references('views.id').onDelete('cascade'))
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('view_secrets_key', ['view_id', 'name'])
    .execute()
  await schema.createIndex('view_secrets_by_name').on('view_secrets').columns(['account_id', 'name', 'view_id']).execute()
}
