import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Records which detached bindings nodes may still need, and which views a commit has an output of. */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('bindings').addColumn('unsettled_epoch', 'bigint').execute()
  await schema
    .createIndex('bindings_unsettled')
    .on('bindings')
    .column('id')
    .where(sql.ref('unsettled_epoch'), 'is not', null)
    .execute()
  await schema.alterTable('commits').addColumn('applied_views', 'text').execute()
  await schema.createIndex('jobs_by_endpoint').on('jobs').columns(['endpoint_id', 'created_at']).execute()
}
