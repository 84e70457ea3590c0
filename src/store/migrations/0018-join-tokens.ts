import type { Db } from '../store.ts'

/** Lets nodes join with tokens, and keeps which one a node joined with, and to whom the id of a removed node belongs. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('join_tokens')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('region', 'text')
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('uses_max', 'integer')
    .addColumn('uses', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('revoked_at', 'bigint')
    .execute()
  await schema.createIndex('join_tokens_by_age').on('join_tokens').columns(['created_at desc', 'id']).execute()
  // No reference: nodes outlive the tokens that are listed.
  await schema.alterTable('nodes').addColumn('join_token_id', 'text').execute()
  await schema
    .createTable('removed_nodes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('credential_hash', 'text', (column) => column.notNull())
    .addColumn('removed_at', 'bigint', (column) => column.notNull())
    .execute()
}
