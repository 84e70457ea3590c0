import type { Db } from '../store.ts'

/** Adds an index for the commit of a receipt, which names a node and a segment. */
export async function up({ schema }: Db): Promise<void> {
  await schema.createIndex('commits_by_segment').on('commits').columns(['endpoint_id', 'node_id', 'seq']).execute()
}
