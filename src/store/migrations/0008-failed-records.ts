import type { Db } from '../store.ts'

/** Adds how many records were processed by a view that failed as a whole. */
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
}
