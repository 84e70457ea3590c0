import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Lets the operator suspend accounts, and tell them apart by name. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .alterTable('accounts')
    .addColumn('status', 'text', (column) => column.notNull().defaultTo('active').check(sql`status in ('active', 'suspended')`))
    .execute()
  await schema.createIndex('accounts_by_status').on('accounts').columns(['status', 'id']).execute()
  await schema.createIndex('accounts_name').unique().on('accounts').column('name').execute()
}
