import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds the name that an account may give to an endpoint. A deleted endpoint does not keep its name from others. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('endpoints').addColumn('name', 'text').execute()
  await schema
    .createIndex('endpoints_name')
    .unique()
    .on('endpoints')
    .columns(['account_id', 'name'])
    .where(sql<boolean>`deleted_at is null and name is not null`)
    .execute()
}
