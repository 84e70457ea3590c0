import type { Db } from '../store.ts'

/** Adds which heartbeat of which run of a process is the last: one that was held up on its way is refused. Nodes of an earlier release do not say. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('node_processes').addColumn('run', 'text').execute()
  await schema.alterTable('node_processes').addColumn('number', 'bigint').execute()
}
