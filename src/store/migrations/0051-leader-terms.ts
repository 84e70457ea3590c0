import type { Db } from '../store.ts'

/** Counts the leaders of control: what an earlier one still writes is refused. */
export async function up(db: Db): Promise<void> {
  await db.schema
    .createTable('leader')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('term', 'bigint', (column) => column.notNull())
    .execute()
  await db.insertInto('leader').values({ id: 1, term: 0 }).execute()
}
