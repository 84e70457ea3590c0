import { sql } from 'kysely'
import { newId } from '#model/id.ts'
import type { Db } from '../store.ts'

/** Gives the database an identity and a generation, and adds what nodes know of it: kept configurations and the number of commits. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema
    .alterTable('epoch')
    .addColumn('database_id', 'text', (column) => column.notNull().defaultTo(''))
    .execute()
  await schema
    .alterTable('epoch')
    .addColumn('generation', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
  await sql`update epoch set database_id = ${newId()}`.execute(db)
  await schema.alterTable('node_processes').addColumn('kept_position', 'text').execute()
  await schema
    .createTable('node_commits')
    .addColumn('node_id', 'text', (column) => column.primaryKey())
    .addColumn('commits', 'bigint', (column) => column.notNull())
    .execute()
  await schema
    .createTable('missing_commits')
    .addColumn('region', 'text', (column) => column.primaryKey())
    .addColumn('since', 'bigint', (column) => column.notNull())
    .addColumn('noted_at', 'bigint', (column) => column.notNull())
    .execute()
}
