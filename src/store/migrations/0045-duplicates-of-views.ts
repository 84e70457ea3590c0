import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds how many rows views left out because another one had their key: none, before a view could. */
export async function up({ schema }: Db): Promise<void> {
  for (const table of ['view_counters', 'view_totals', 'jobs'])
    await schema
      .alterTable(table)
      .addColumn('duplicates', 'bigint', (column) => column.notNull().defaultTo(sql.lit(0)))
      .execute()
}
