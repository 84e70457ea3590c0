import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Results of control's checks of DNS and of the certificates that nodes serve, and when an endpoint was provisioned. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .alterTable('nodes')
    .addColumn('tls_ports', 'text', (column) => column.notNull().defaultTo('[]'))
    .execute()
  await schema.alterTable('endpoints').addColumn('provisioned_at', 'bigint').execute()
  await schema
    .createIndex('endpoints_unprovisioned')
    .on('endpoints')
    .columns(['created_at desc'])
    .where(sql<boolean>`provisioned_at is null and desired_state = 'active' and deleted_at is null`)
    .execute()
  await schema
    .createTable('certificate_checks')
    .addColumn('node_id', 'text', (column) => column.notNull().references('nodes.id').onDelete('cascade'))
    .addColumn('address', 'text', (column) => column.notNull())
    .addColumn('port', 'integer', (column) => column.notNull())
    .addColumn('names', 'text', (column) => column.notNull())
    .addColumn('not_before', 'bigint')
    .addColumn('not_after', 'bigint')
    .addColumn('error', 'text')
    .addColumn('checked_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('certificate_checks_key', ['node_id', 'address', 'port'])
    .execute()
  await schema
    .createTable('dns_checks')
    .addColumn('endpoint_id', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('answers', 'text', (column) => column.notNull())
    .addColumn('checked_at', 'bigint', (column) => column.notNull())
    .execute()
}
