import type { Db } from '../store.ts'

/** Adds as of when a node has counted its logs: all of them, or one that it could not read since. Nodes of an earlier release do not say. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('node_processes').addColumn('counted_at', 'bigint').execute()
  await schema.alterTable('endpoint_lags').addColumn('counted_at', 'bigint').execute()
}
