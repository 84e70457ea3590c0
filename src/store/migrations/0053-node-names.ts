import type { Db } from '../store.ts'

/** Adds the names that operators give to nodes, and keeps that of a removed one in its losses. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('nodes').addColumn('name', 'text').execute()
  await schema.alterTable('losses').addColumn('node_name', 'text').execute()
  await schema.createIndex('nodes_name').unique().on('nodes').column('name').execute()
}
