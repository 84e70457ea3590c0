import type { Db } from '../store.ts'

/** Records that are or were published in DNS. A row references nothing else: it stays until the DNS service confirms removal. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('dns_records')
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('target', 'text', (column) => column.notNull())
    .addColumn('published', 'text')
    .addColumn('ttl', 'integer')
    .addColumn('published_at', 'bigint')
    .addColumn('sent', 'text')
    .addColumn('attempt', 'text')
    .addColumn('retry_at', 'bigint')
    .addColumn('failures', 'integer', (column) => column.notNull())
    .addColumn('last_error', 'text')
    .addPrimaryKeyConstraint('dns_records_pkey', ['name', 'type'])
    .execute()
  await schema.createIndex('dns_records_by_region').on('dns_records').column('region').execute()
  await schema.createIndex('dns_records_by_attempt').on('dns_records').column('attempt').execute()
  await schema
    .createTable('dns_removals')
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('address', 'text', (column) => column.notNull())
    .addColumn('removed_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('dns_removals_pkey', ['region', 'address'])
    .execute()
}
