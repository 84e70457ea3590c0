import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds where endpoints delivered before, and why a search for a loss could not look everywhere. Confirmed losses are searched, too. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema
    .createTable('former_places')
    .addColumn('endpoint_id', 'text', (column) => column.notNull().references('endpoints.id'))
    .addColumn('destination_id', 'text', (column) => column.notNull())
    .addColumn('bucket', 'text', (column) => column.notNull())
    .addColumn('prefix', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('replaced_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('former_places_once', ['endpoint_id', 'destination_id', 'bucket', 'prefix'])
    .execute()
  await schema.alterTable('losses').addColumn('search_problem', 'text').execute()
  await schema.dropIndex('losses_unsearched').execute()
  await schema
    .createIndex('losses_unsearched')
    .on('losses')
    .columns(['account_id', 'endpoint_id'])
    .where(sql<boolean>`searched_at is null and recovered_at is null`)
    .execute()
}
