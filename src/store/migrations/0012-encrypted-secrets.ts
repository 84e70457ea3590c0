import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** The next start encrypts what is plain text. Signing keys that were plain text count as old, so that new ones replace them. */
export async function up(db: Db): Promise<void> {
  for (const table of ['secrets', 'signing_keys']) await db.schema.alterTable(table).addColumn('key_id', 'text').execute()
  await sql`update signing_keys set created_at = created_at - ${31 * 86_400_000}`.execute(db)
}
