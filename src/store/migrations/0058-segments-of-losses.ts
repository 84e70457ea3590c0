import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds whose disk a loss is on, and which segments it misses. Of earlier ones that is known from the first to the last together. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema.alterTable('losses').addColumn('credential_hash', 'text').execute()
  await schema
    .alterTable('losses')
    .addColumn('segments_unknown', 'bigint', (added) => added.notNull().defaultTo(sql.lit(0)))
    .execute()
  await schema
    .alterTable('losses')
    .addColumn('runs', 'text', (added) => added.notNull().defaultTo(sql.lit('[]')))
    .execute()
  await sql`update losses set runs = '[{"first_seq":' || first_seq || ',"last_seq":' || last_seq || ',"segments":' || segments_missing
      || ',"records":' || coalesce(cast(case when records > records_recovered then records - records_recovered else 0 * records end as text), 'null')
      || ',"bytes":' || case when bytes > bytes_recovered then bytes - bytes_recovered else 0 end
      || ',"done":[],"records_done":0,"bytes_done":0}]'
    where first_seq is not null and last_seq is not null and segments_missing > 0`.execute(db)
  await sql`update losses set segments_unknown = segments_missing where first_seq is null or last_seq is null`.execute(db)
}
