import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds the names of endpoints: their labels until their account gives another. A deleted endpoint does not keep its name from others. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  // SQLite adds a column that is not null only with a default.
  await schema
    .alterTable('endpoints')
    .addColumn('name', 'text', (column) => column.notNull().defaultTo(''))
    .execute()
  await sql`update endpoints set name = label`.execute(db)
  await schema
    .createIndex('endpoints_name')
    .unique()
    .on('endpoints')
    .columns(['account_id', 'name'])
    .where(sql<boolean>`deleted_at is null`)
    .execute()
}
