import type { Db } from '../store.ts'

/** Adds which segments of a log a node holds, each with its records. Nodes of an earlier release do not say. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('endpoint_lags').addColumn('held', 'text').execute()
}
