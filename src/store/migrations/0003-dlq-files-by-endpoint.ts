import type { Db } from '../store.ts'

/** Adds an index for the DLQ files of one endpoint of a view. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createIndex('dlq_files_by_endpoint')
    .on('dlq_files')
    .columns(['view_id', 'endpoint_id', 'created_at desc', 'commit_id'])
    .execute()
}
