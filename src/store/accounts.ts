import { toTime } from './columns.ts'
import type { Db } from './store.ts'

/** The owner of all resources. Its roles require `external_id` as the external id when Inlet assumes them. */
export type Account = { readonly id: string; readonly name: string; readonly external_id: string; readonly created_at: string }

export type NewAccount = { readonly id: string; readonly name: string; readonly external_id: string }

export async function insertAccount(db: Db, account: NewAccount, now: number): Promise<Account> {
  await db
    .insertInto('accounts')
    .values({ ...account, created_at: now })
    .execute()
  return { ...account, created_at: toTime(now) }
}

/** Returns the oldest account. */
export async function findFirstAccount(db: Db): Promise<Account | undefined> {
  const row = await db.selectFrom('accounts').selectAll().orderBy('created_at').orderBy('id').limit(1).executeTakeFirst()
  return row === undefined ? undefined : { ...row, created_at: toTime(row.created_at) }
}
