import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds when control had looked for a loss in the buckets. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('losses').addColumn('searched_at', 'bigint').execute()
  await schema
    .createIndex('losses_unsearched')
    .on('losses')
    .column('recorded_at')
    .where(sql<boolean>`searched_at is null and recovered_at is null and confirmed_at is null`)
    .execute()
}
