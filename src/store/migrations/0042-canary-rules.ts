import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds the rule by which a canary stops, and why one did. Bindings that exist have no rule: nothing stops them. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema.alterTable('bindings').addColumn('canary_rule', 'text').execute()
  await schema.alterTable('bindings').addColumn('stopped_reason', 'text').execute()
  await sql`create index bindings_by_rule on bindings (id) where canary_rule is not null and deactivated_at is null`.execute(db)
}
