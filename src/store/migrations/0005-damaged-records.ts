import type { Db } from '../store.ts'

/** Adds how many records of a segment were lost to damage. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .alterTable('commits')
    .addColumn('records_damaged', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
}
