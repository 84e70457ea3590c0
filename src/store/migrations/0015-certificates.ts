import type { Db } from '../store.ts'

export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('certificates')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('issuer', 'text')
    .addColumn('chain', 'text')
    .addColumn('private_key', 'text')
    .addColumn('key_id', 'text')
    .addColumn('fingerprint', 'text')
    .addColumn('not_before', 'bigint')
    .addColumn('not_after', 'bigint')
    .addColumn('due_at', 'bigint', (column) => column.notNull())
    .addColumn('failures', 'integer', (column) => column.notNull())
    .addColumn('last_error', 'text')
    .execute()
}
