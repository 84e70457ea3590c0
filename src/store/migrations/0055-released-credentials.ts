import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Keeps the credentials of released ids beside those of adopted logs, with the reason that a machine is given which presents one. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .alterTable('adopted_credentials')
    .addColumn('fence', 'text', (added) => added.notNull().defaultTo(sql.lit('node_adopted')))
    .execute()
}
