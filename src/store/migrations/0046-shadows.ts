import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds the definitions that run on segments only to be counted. */
export async function up(db: Db): Promise<void> {
  await db.schema
    .createTable('shadows')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('definition', 'text', (column) => column.notNull())
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('started_by', 'text', (column) => column.notNull())
    .addForeignKeyConstraint('shadows_endpoint', ['account_id', 'endpoint_id'], 'endpoints', ['account_id', 'id'])
    .addForeignKeyConstraint('shadows_view', ['account_id', 'view_id'], 'views', ['account_id', 'id'])
    .execute()
  await sql`create unique index shadows_once on shadows (endpoint_id, view_id)`.execute(db)
  await sql`create index shadows_by_view on shadows (view_id)`.execute(db)
}
