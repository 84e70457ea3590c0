import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds how many records were processed by a view that failed as a whole, and which required views hold their log. */
export async function up({ schema }: Db): Promise<void> {
  for (const table of ['view_counters', 'view_totals'])
    await schema
      .alterTable(table)
      .addColumn('failed', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute()
  await schema
    .alterTable('jobs')
    .addColumn('failed_records', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()

  await schema.alterTable('endpoint_lags').addColumn('failing_view_id', 'text').execute()
  await schema.alterTable('endpoint_lags').addColumn('failing_since', 'bigint').execute()
  await schema
    .createIndex('endpoint_lags_by_failing_view')
    .on('endpoint_lags')
    .columns(['failing_view_id', 'endpoint_id'])
    .where(sql.ref('failing_view_id'), 'is not', null)
    .execute()
}
