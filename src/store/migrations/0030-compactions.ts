import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds compactions, with the files that they move, and jobs without a view. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema
    .createTable('compactions')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('view_id', 'text')
    .addColumn('view_version', 'bigint')
    .addColumn('date', 'text', (column) => column.notNull())
    .addColumn('destination_id', 'text', (column) => column.notNull())
    .addColumn('bucket', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('prefix', 'text', (column) => column.notNull())
    .addColumn('planned_at', 'bigint', (column) => column.notNull())
    .addColumn('failed_at', 'bigint')
    .addColumn('file', 'text')
    .addColumn('published_at', 'bigint')
    .addForeignKeyConstraint('compactions_endpoint', ['account_id', 'endpoint_id'], 'endpoints', ['account_id', 'id'])
    .execute()
  await schema.createIndex('compactions_by_plan').on('compactions').column('planned_at').execute()
  await schema.createIndex('compactions_by_endpoint').on('compactions').columns(['endpoint_id', 'published_at']).execute()
  await schema
    .createTable('compacted_artifacts')
    .addColumn('commit_id', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('compaction_id', 'text', (column) => column.notNull().references('compactions.id').onDelete('cascade'))
    .addColumn('marker_id', 'text', (column) => column.notNull())
    .addColumn('first_row', 'bigint', (column) => column.notNull())
    .addColumn('rows', 'bigint', (column) => column.notNull())
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .addColumn('sha256', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('compacted_artifacts_key', ['commit_id', 'kind'])
    .execute()
  await schema
    .createIndex('compacted_artifacts_in_order')
    .on('compacted_artifacts')
    .columns(['compaction_id', 'first_row'])
    .execute()
  await rebuildJobs(db)
}

/** Neither database can change a check everywhere, so both tables are made anew with their rows. */
async function rebuildJobs(db: Db): Promise<void> {
  const { schema } = db
  await sql`create table jobs_before as select * from jobs`.execute(db)
  await sql`create table job_units_before as select * from job_units`.execute(db)
  await schema.dropTable('job_units').execute()
  await schema.dropTable('jobs').execute()
  await schema
    .createTable('jobs')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('kind', 'text', (column) => column.notNull().check(sql`kind in ('backfill', 'redrive', 'compaction')`))
    .addColumn('status', 'text', (column) =>
      column.notNull().check(sql`status in ('running', 'paused', 'succeeded', 'failed', 'canceled')`),
    )
    .addColumn('view_id', 'text', (column) => column.check(sql`(view_id is null) = (kind = 'compaction')`))
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
    .addColumn('failed_records', 'bigint', (column) => column.notNull())
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
  await schema
    .createTable('job_units')
    .addColumn('job_id', 'text', (column) => column.notNull().references('jobs.id').onDelete('cascade'))
    .addColumn('commit_id', 'text', (column) => column.notNull())
    .addColumn('view_id', 'text')
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
  for (const [table, columns] of [
    ['jobs', jobColumns],
    ['job_units', unitColumns],
  ] as const) {
    const names = sql.join(columns.map((column) => sql.ref(column)))
    await sql`insert into ${sql.table(table)} (${names}) select ${names} from ${sql.table(`${table}_before`)}`.execute(db)
    await schema.dropTable(`${table}_before`).execute()
  }
  await indexJobs(db)
}

async function indexJobs({ schema }: Db): Promise<void> {
  await schema
    .createIndex('jobs_active_once')
    .unique()
    .on('jobs')
    .columns(['view_id', 'endpoint_id'])
    .where(sql.ref('finished_at'), 'is', null)
    .execute()
  await schema
    .createIndex('jobs_compacting_once')
    .unique()
    .on('jobs')
    .columns(['endpoint_id'])
    .where(sql<boolean>`finished_at is null and view_id is null`)
    .execute()
  await schema.createIndex('jobs_by_account').on('jobs').columns(['account_id', 'created_at desc', 'id']).execute()
  await schema.createIndex('jobs_by_region').on('jobs').columns(['region', 'status', 'looked_at']).execute()
  await schema.createIndex('jobs_by_endpoint').on('jobs').columns(['endpoint_id', 'created_at']).execute()
  await schema.createIndex('jobs_by_end').on('jobs').column('finished_at').execute()
  await schema.createIndex('job_units_in_order').on('job_units').columns(['job_id', 'available_at', 'number']).execute()
  await schema
    .createIndex('job_units_leased')
    .on('job_units')
    .columns(['node_id', 'commit_id'])
    .where(sql<boolean>`status = 'leased'`)
    .execute()
}

const jobColumns = [
  ...[
    'id',
    'account_id',
    'kind',
    'status',
    'view_id',
    'from_view_id',
    'endpoint_id',
    'region',
    'from_at',
    'to_at',
    'total',
    'done',
  ],
  ...['skipped', 'failed', 'processed', 'accepted', 'dropped', 'dlq', 'failed_records', 'created_by', 'created_at', 'started_at'],
  ...['finished_at', 'last_error', 'looked_at'],
]
const unitColumns = [
  ...[
    'job_id',
    'commit_id',
    'view_id',
    'number',
    'status',
    'available_at',
    'lease_id',
    'node_id',
    'incarnation',
    'deaths',
    'reason',
  ],
]
