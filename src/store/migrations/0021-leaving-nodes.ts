import type { Db } from '../store.ts'

/** Records which nodes were asked to stop: they get no new clients. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .alterTable('node_processes')
    .addColumn('leaving', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
}
