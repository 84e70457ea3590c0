import { sql } from 'kysely'
import type { Db } from '../store.ts'

/**
 * Adds what the counters of views need to count jobs: which views failed on a segment, whose dead letters an addition took over, and which
 * are taken over. What jobs did before stays uncounted: their outcomes are no longer known.
 */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  for (const table of ['view_counters', 'view_totals']) {
    await schema
      .alterTable(table)
      .addColumn('redriven', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute()
  }
  await schema.alterTable('commits').addColumn('failed_views', 'text').execute()
  await schema.alterTable('commit_additions').addColumn('from_view_id', 'text').execute()
  await schema.alterTable('dlq_files').addColumn('counted_at', 'bigint').execute()
  await schema.alterTable('dlq_files').addColumn('redriven_at', 'bigint').execute()
  await sql`update commit_additions set from_view_id = (select from_view_id from jobs where jobs.id = commit_additions.job_id)`.execute(
    db,
  )
  await sql`update dlq_files set
    counted_at = case when exists (
      select 1 from commit_additions as own where own.commit_id = dlq_files.commit_id and own.view_id = dlq_files.view_id
    ) then null else created_at end,
    redriven_at = (
      select min(added_at) from commit_additions as later
      where later.commit_id = dlq_files.commit_id and later.from_view_id = dlq_files.view_id
    )`.execute(db)
}
