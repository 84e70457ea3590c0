import { AppError } from '#errors.ts'
import type { Account, AccountStatus, ChangeAccount } from '#model/account.ts'
import { weightLimits } from '#model/limits.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { insertApiKey, type NewStoredApiKey, type StoredApiKey } from './api-keys.ts'
import { toTime } from './columns.ts'
import { translateErrors } from './database-error.ts'
import type { ChangeTx } from './epoch.ts'
import { readPage } from './page.ts'
import type { Database } from './schema.ts'
import { touchEndpointsOfAccount } from './section-versions.ts'
import type { Db } from './store.ts'

export type NewAccount = {
  readonly id: string
  readonly name: string
  /** The roles of the account require it as the external id when Inlet assumes them. */
  readonly external_id: string
}

const nameTaken = new AppError('conflict', 'another account has this name')

/** Throws conflict if the name is taken. */
export async function insertAccount(db: Db, account: NewAccount, now: number): Promise<Account> {
  const { newest } = await db
    .selectFrom('accounts')
    .select(({ fn }) => fn.max('created_at').as('newest'))
    .executeTakeFirstOrThrow()
  // Later than every other account, even if the clock was set back: the first account must stay the first.
  const row = {
    ...account,
    status: 'active',
    weight: weightLimits.default,
    quotas: null,
    created_at: Math.max(now, (newest ?? now - 1) + 1),
  }
  await translateErrors(db.insertInto('accounts').values(row).execute(), { unique: nameTaken })
  return toAccount(row)
}

/** Throws conflict if the name is taken. */
export async function insertAccountWithKey(
  db: ChangeTx,
  { account, key }: { readonly account: NewAccount; readonly key: NewStoredApiKey },
  now: number,
): Promise<{ readonly account: Account; readonly key: StoredApiKey }> {
  return { account: await insertAccount(db, account, now), key: await insertApiKey(db, key, now) }
}

/** Returns the oldest account, which the first start created. */
export async function findFirstAccount(db: Db): Promise<Account | undefined> {
  const row = await db.selectFrom('accounts').selectAll().orderBy('created_at').orderBy('id').limit(1).executeTakeFirst()
  return row && toAccount(row)
}

/** Throws not_found. */
export async function getAccount(db: Db, id: string): Promise<Account> {
  const row = await db.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst()
  if (row === undefined) throw new AppError('not_found', 'no such account')
  return toAccount(row)
}

/** Returns one page, newest first. */
export async function listAccounts(db: Db, page: PageQuery): Promise<Page<Account>> {
  return readPage(
    page,
    db
      .selectFrom('accounts')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow(),
    db
      .selectFrom('accounts')
      .selectAll()
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(page.limit)
      .offset(page.offset)
      .execute(),
    toAccount,
  )
}

export async function listSuspendedAccountIds(db: Db): Promise<readonly string[]> {
  const rows = await db.selectFrom('accounts').select('id').where('status', '=', 'suspended').execute()
  return rows.map(({ id }) => id)
}

/** Changes the given fields. Nodes see a new status and weight. Throws not_found, and conflict if the name is taken. */
export async function updateAccount(db: ChangeTx, id: string, change: ChangeAccount): Promise<Account> {
  const before = await getAccount(db, id)
  const { name = before.name, status = before.status, weight = before.weight } = change
  const update = db.updateTable('accounts').set({ name, status, weight }).where('id', '=', id)
  await translateErrors(update.execute(), { unique: nameTaken })
  if (status !== before.status || weight !== before.weight) await touchEndpointsOfAccount(db, id)
  return { ...before, name, status, weight }
}

function toAccount({ id, name, status, weight, created_at }: Database['accounts']): Account {
  return { id, name, status: status as AccountStatus, weight, created_at: toTime(created_at) }
}
