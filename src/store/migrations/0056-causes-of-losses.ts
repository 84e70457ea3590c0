import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds why records are lost. Until now that was the removal of their node. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .alterTable('losses')
    .addColumn('cause', 'text', (added) => added.notNull().defaultTo(sql.lit('node_removed')))
    .execute()
}
