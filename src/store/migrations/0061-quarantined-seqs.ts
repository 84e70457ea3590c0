import type { Db } from '../store.ts'

/** Adds which segments of a log are in quarantine. Nodes of an earlier release do not say. */
export async function up({ schema }: Db): Promise<void> {
  for (const column of ['quarantined_first_seq', 'quarantined_last_seq'])
    await schema.alterTable('endpoint_lags').addColumn(column, 'bigint').execute()
}
