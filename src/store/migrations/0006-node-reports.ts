import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Lets nodes report everything that they hold, and records which configurations they received. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  for (const column of ['open_segments', 'parked_segments', 'quarantined_segments', 'closed'])
    await schema
      .alterTable('endpoint_lags')
      .addColumn(column, 'bigint', (type) => type.notNull().defaultTo(0))
      .execute()

  await schema
    .alterTable('node_processes')
    .addColumn('disk_full', 'integer', (type) => type.notNull().defaultTo(0))
    .execute()

  await schema
    .createTable('blocked_logs')
    .addColumn('node_id', 'text', (column) => column.notNull().references('nodes.id').onDelete('cascade'))
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('reason', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('blocked_logs_key', ['endpoint_id', 'node_id'])
    .execute()
  await schema.createIndex('blocked_logs_by_node').on('blocked_logs').column('node_id').execute()

  await schema
    .createTable('node_snapshots')
    .addColumn('node_id', 'text', (column) => column.notNull().references('nodes.id').onDelete('cascade'))
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('epoch', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('node_snapshots_key', ['node_id', 'region'])
    .execute()
  await schema.createIndex('node_snapshots_by_region').on('node_snapshots').columns(['region', 'epoch']).execute()
  // Any of the known nodes may have any endpoint of its region.
  await sql`insert into node_snapshots (node_id, region, epoch) select id, region, (select max(value) from epoch) from nodes`.execute(
    db,
  )
}
