import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Finds the few endpoints that compact by themselves, once a minute. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createIndex('endpoints_compacting')
    .on('endpoints')
    .column('id')
    .where(sql.ref('compaction'), 'is not', null)
    .execute()
}
