import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Attempts to change something. No reference to other tables: an event outlives what it is about. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('audit_events')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('account_id', 'text')
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('address', 'text')
    .addColumn('operation', 'text', (column) => column.notNull())
    .addColumn('resource_id', 'text')
    .addColumn('result', 'text', (column) => column.notNull().check(sql`result in ('succeeded', 'failed')`))
    .addColumn('status', 'integer')
    .addColumn('error', 'text')
    .addColumn('request_id', 'text')
    .addColumn('unrecorded', 'integer', (column) => column.notNull())
    .execute()
  await schema.createIndex('audit_events_by_account').on('audit_events').columns(['account_id', 'id']).execute()
  await schema.createIndex('audit_events_by_result').on('audit_events').columns(['account_id', 'result', 'id']).execute()
  await schema.createIndex('audit_events_by_operation').on('audit_events').columns(['account_id', 'operation', 'id']).execute()
}
