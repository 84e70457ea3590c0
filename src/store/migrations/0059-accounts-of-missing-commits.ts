import type { Db } from '../store.ts'

/** Adds of which accounts commits may be missing, once all buckets were read but some of these. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('missing_commits').addColumn('accounts', 'text').execute()
}
