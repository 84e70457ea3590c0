import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds rows and duplicates to the series of views, as in their counters: none, before they were counted there. */
export async function up({ schema }: Db): Promise<void> {
  for (const column of ['more_rows', 'duplicates'])
    await schema
      .alterTable('view_series')
      .addColumn(column, 'bigint', (added) => added.notNull().defaultTo(sql.lit(0)))
      .execute()
}
