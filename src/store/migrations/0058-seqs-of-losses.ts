import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds whose disk a loss is on, and which segments it misses. Until now, that was each from its first to its last. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema.alterTable('losses').addColumn('credential_hash', 'text').execute()
  await schema
    .alterTable('losses')
    .addColumn('segments_unknown', 'bigint', (added) => added.notNull().defaultTo(sql.lit(0)))
    .execute()
  for (const column of ['missing_seqs', 'partial_seqs'])
    await schema
      .alterTable('losses')
      .addColumn(column, 'text', (added) => added.notNull().defaultTo(sql.lit('[]')))
      .execute()
  await sql`update losses set missing_seqs = '[[' || first_seq || ',' || last_seq || ']]'
    where first_seq is not null and last_seq is not null`.execute(db)
  await sql`update losses set segments_unknown = segments_missing where first_seq is null or last_seq is null`.execute(db)
}
