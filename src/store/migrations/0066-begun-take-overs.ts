import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds whether a node that should take over a lost one has its place. */
export async function up(db: Db): Promise<void> {
  await db.schema.alterTable('take_overs').addColumn('begun_at', 'bigint').execute()
  await sql`update take_overs set begun_at = seen_at where by_node_id <> '' and exists
    (select 1 from former_credentials as former where former.node_id = take_overs.node_id and former.fence = 'node_adopted')`.execute(
    db,
  )
}
