/**
 * Names of what other rows keep only the id of.
 *
 * Law: an account learns only names of what it has, and of people who were among its own. A refused call may have named what belongs
 * to another.
 */
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../store.ts'

type Named = {
  readonly ids: readonly string[]
  /** Ids of people who are, or were, members of the account. */
  readonly people: readonly string[]
}

/** Returns the names of those ids that have one: of the account, or of the whole installation if `account_id` is undefined. */
export async function listNames(
  db: Db,
  account_id: string | undefined,
  { ids, people }: Named,
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const isAmong = (id: RawBuilder<unknown>, some = ids) =>
    some.length === 0 ? sql`1 = 0` : sql`${id} in (${sql.join([...new Set(some)])})`
  const among = isAmong(sql`id`)
  const own = (condition: RawBuilder<unknown>) => (account_id === undefined ? sql`` : sql`and ${condition}`)
  const ofAccount = own(sql`account_id = ${account_id}`)
  const ofOperator = own(sql`1 = 0`)
  const isMember = sql`exists (select 1 from memberships where person_id = people.id and account_id = ${account_id})`
  const wasMember = isAmong(sql`id`, people)
  const { rows } = await sql<{ id: string; name: string }>`
    select id, name from endpoints where ${among} ${ofAccount}
    union all select id, name from destinations where ${among} ${ofAccount}
    union all select id, name from api_keys where ${among} ${ofAccount}
    union all select id, name || ' v' || cast(version as text) from views where ${among} ${ofAccount}
    union all select id, name from people where ${among} ${own(sql`(${isMember} or ${wasMember})`)}
    union all select id, name from accounts where ${among} ${own(sql`id = ${account_id}`)}
    union all select id, 'as ' || role from sign_in_links where ${among} and role is not null ${ofAccount}
    union all select bindings.id, views.name || ' v' || cast(views.version as text) || ' on ' || endpoints.name
      from bindings join views on views.id = view_id join endpoints on endpoints.id = endpoint_id
      where ${isAmong(sql`bindings.id`)} ${own(sql`bindings.account_id = ${account_id}`)}
    union all select jobs.id, replace(kind, 'redrive', 're-drive')
        || coalesce(' of ' || views.name || ' v' || cast(views.version as text), '') || ' on ' || endpoints.name
      from jobs left join views on views.id = view_id join endpoints on endpoints.id = endpoint_id
      where ${isAmong(sql`jobs.id`)} ${own(sql`jobs.account_id = ${account_id}`)}
    union all select id, coalesce(name, region || ' ' || ingest_address) from nodes where ${among} ${ofOperator}
    union all select id, name from join_tokens where ${among} ${ofOperator}`.execute(db)
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** The id of a person, key or join token in `person:<id>`; undefined for an actor without one. */
export function idOfActor(actor: string): string | undefined {
  return actor.split(':')[1]
}
