import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Says which missing commits control records again by itself. Those from before are left to the operator, as they were. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .alterTable('missing_commits')
    .addColumn('automatic', 'integer', (added) => added.notNull().defaultTo(sql.lit(0)))
    .execute()
}
