/**
 * Names of what other rows keep only the id of.
 *
 * Law: an account learns only names of what it has. A refused call may have named what belongs to another.
 */
import { type RawBuilder, sql } from 'kysely'
import type { Db } from './store.ts'

/** Returns the names of those ids that have one: of the account, or of the whole installation if `account_id` is undefined. */
export async function listNames(
  db: Db,
  account_id: string | undefined,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const among = sql`id in (${sql.join([...new Set(ids)])})`
  const own = (condition: RawBuilder<unknown>) => (account_id === undefined ? sql`` : sql`and ${condition}`)
  const ofAccount = own(sql`account_id = ${account_id}`)
  const isMember = sql`exists (select 1 from memberships where person_id = people.id and account_id = ${account_id})`
  const { rows } = await sql<{ id: string; name: string }>`
    select id, name from endpoints where ${among} ${ofAccount}
    union all select id, name from destinations where ${among} ${ofAccount}
    union all select id, name from api_keys where ${among} ${ofAccount}
    union all select id, name || ' v' || cast(version as text) from views where ${among} ${ofAccount}
    union all select id, name from people where ${among} ${own(isMember)}
    union all select id, name from accounts where ${among} ${own(sql`id = ${account_id}`)}
    union all select id, name from join_tokens where ${among} ${own(sql`1 = 0`)}`.execute(db)
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** The id of a person, key or join token in `person:<id>`; undefined for an actor without one. */
export function idOfActor(actor: string): string | undefined {
  return actor.split(':')[1]
}
