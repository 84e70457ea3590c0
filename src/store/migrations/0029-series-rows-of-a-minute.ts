import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Lets a row of a series have several buckets, and be written only if nobody else did since it was read. */
export async function up(db: Db): Promise<void> {
  await db.schema
    .alterTable('endpoint_series')
    .addColumn('writes', 'bigint', (column) => column.notNull().defaultTo(1))
    .execute()
  // They are kept for an hour only.
  await db.deleteFrom('endpoint_series').where('step', '=', '10s').execute()
  await sql`update endpoint_series set counts = '{"0":' || counts || '}'`.execute(db)
}
