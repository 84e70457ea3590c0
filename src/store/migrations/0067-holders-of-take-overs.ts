import { sql } from 'kysely'
import type { Db } from '../store.ts'

const ended = sql.lit(Number.MAX_SAFE_INTEGER)

/** Adds which node has the place of a lost one, apart from the node that should get it next, and when its takeover ended. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema.alterTable('take_overs').addColumn('holder_node_id', 'text').execute()
  await schema.alterTable('take_overs').addColumn('ended_at', 'bigint').execute()
  // The audit trail knows who got it, also if it was given to another node since, and whether anybody did.
  await sql`update take_overs set holder_node_id = (select substr(audit_events.actor, 6) from audit_events
    where audit_events.operation = 'takeOverNode' and audit_events.resource_id = take_overs.node_id
    order by audit_events.at desc limit 1) where begun_at is not null`.execute(db)
  // In place of a time.
  const lastAdoption = sql`coalesce((select max(former.ended_at) from former_credentials as former
    where former.node_id = take_overs.node_id and former.fence = 'node_adopted'), 0)`
  await sql`update take_overs set ended_at = ${lastAdoption}, seen_at = ${lastAdoption} where seen_at = ${ended}`.execute(db)
  await schema.alterTable('take_overs').dropColumn('begun_at').execute()
  await schema.createIndex('take_overs_by_holder').on('take_overs').column('holder_node_id').execute()
}
