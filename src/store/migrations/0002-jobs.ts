import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Creates the tables for backfills and re-drives, and for the artifacts that they add to commits. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema
    .createTable('jobs')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('kind', 'text', (column) => column.notNull().check(sql`kind in ('backfill', 'redrive')`))
    .addColumn('status', 'text', (column) =>
      column.notNull().check(sql`status in ('running', 'paused', 'succeeded', 'failed', 'canceled')`),
    )
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('from_view_id', 'text')
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('from_at', 'bigint')
    .addColumn('to_at', 'bigint')
    .addColumn('total', 'bigint', (column) => column.notNull())
    .addColumn('done', 'bigint', (column) => column.notNull())
    .addColumn('skipped', 'bigint', (column) => column.notNull())
    .addColumn('failed', 'bigint', (column) => column.notNull())
    .addColumn('processed', 'bigint', (column) => column.notNull())
    .addColumn('accepted', 'bigint', (column) => column.notNull())
    .addColumn('dropped', 'bigint', (column) => column.notNull())
    .addColumn('dlq', 'bigint', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('started_at', 'bigint')
    .addColumn('finished_at', 'bigint')
    .addColumn('last_error', 'text')
    .addColumn('looked_at', 'bigint', (column) => column.notNull())
    .addForeignKeyConstraint('jobs_view', ['account_id', 'view_id'], 'views', ['account_id', 'id'])
    .addForeignKeyConstraint('jobs_from_view', ['account_id', 'from_view_id'], 'views', ['account_id', 'id'])
    .addForeignKeyConstraint('jobs_endpoint', ['account_id', 'endpoint_id'], 'endpoints', ['account_id', 'id'])
    .execute()
  // A segment has one output per view version: two jobs that could both create it must not run at once.
  await schema
    .createIndex('jobs_active_once')
    .unique()
    .on('jobs')
    .columns(['view_id', 'endpoint_id'])
    .where(sql.ref('finished_at'), 'is', null)
    .execute()
  await schema.createIndex('jobs_by_account').on('jobs').columns(['account_id', 'created_at desc', 'id']).execute()
  await schema.createIndex('jobs_by_region').on('jobs').columns(['region', 'status', 'looked_at']).execute()
  await schema.createIndex('jobs_by_end').on('jobs').column('finished_at').execute()

  await createUnitTables(db)
}

async function createUnitTables({ schema }: Db): Promise<void> {
  await schema
    .createTable('job_units')
    .addColumn('job_id', 'text', (column) => column.notNull().references('jobs.id').onDelete('cascade'))
    .addColumn('commit_id', 'text', (column) => column.notNull())
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('number', 'bigint', (column) => column.notNull())
    .addColumn('status', 'text', (column) =>
      column.notNull().check(sql`status in ('waiting', 'leased', 'done', 'skipped', 'failed')`),
    )
    .addColumn('available_at', 'bigint')
    .addColumn('lease_id', 'text')
    .addColumn('node_id', 'text')
    .addColumn('incarnation', 'text')
    .addColumn('deaths', 'bigint', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addPrimaryKeyConstraint('job_units_key', ['job_id', 'commit_id'])
    .execute()
  await schema.createIndex('job_units_in_order').on('job_units').columns(['job_id', 'available_at', 'number']).execute()
  await schema
    .createIndex('job_units_leased')
    .on('job_units')
    .columns(['node_id', 'commit_id'])
    .where(sql<boolean>`status = 'leased'`)
    .execute()

  await schema
    .createTable('commit_additions')
    .addColumn('commit_id', 'text', (column) => column.notNull().references('commits.id').onDelete('cascade'))
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('job_id', 'text', (column) => column.notNull())
    .addColumn('artifacts', 'text', (column) => column.notNull())
    .addColumn('added_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('commit_additions_key', ['commit_id', 'view_id'])
    .execute()
  await schema.createIndex('commits_by_seal').on('commits').columns(['endpoint_id', 'sealed_at', 'id']).execute()
}
