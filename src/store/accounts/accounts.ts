import { AppError } from '#errors.ts'
import type { Account, AccountStatus, ChangeAccount } from '#model/account.ts'
import { findOverlap } from '#model/allowed-bucket.ts'
import { weightLimits } from '#model/limits.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { effectiveQuotas, mergeQuotas, type OwnQuotas, type Quotas } from '#model/quota.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { touchEndpointsOfAccount } from '../cluster/section-versions.ts'
import { fromJsonOrNull, toTime } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import { readPage } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'
import { insertApiKey, type NewStoredApiKey, type StoredApiKey } from './api-keys.ts'

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
    allowed_buckets: null,
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
  return toAccount(await getRow(db, id))
}

/** Returns what destinations of the account need: what roles demand, and what may be used without one. Throws not_found. */
export async function getBucketAccess(
  db: Db,
  id: string,
): Promise<{ readonly external_id: string; readonly allowed: readonly string[] }> {
  const { external_id, allowed_buckets } = await getRow(db, id)
  return { external_id, allowed: fromJsonOrNull<string[]>(allowed_buckets) ?? [] }
}

/** Allows the account more buckets. Returns those that it did not have. Throws not_found, and conflict if another account has one. */
export async function allowBuckets(db: ChangeTx, id: string, entries: readonly string[]): Promise<readonly string[]> {
  const { allowed } = await getBucketAccess(db, id)
  const added = entries.filter((entry) => !allowed.includes(entry))
  if (added.length > 0) await updateAccount(db, id, { allowed_buckets: [...allowed, ...added] })
  return added
}

async function getRow(db: Db, id: string): Promise<Database['accounts']> {
  const row = await db.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst()
  if (row === undefined) throw new AppError('not_found', 'no such account')
  return row
}

/** Returns the quotas that apply to an account. */
export function quotasOf(row: Pick<Database['accounts'], 'quotas'>): Quotas {
  return effectiveQuotas(ownQuotas(row))
}

function ownQuotas({ quotas }: Pick<Database['accounts'], 'quotas'>): OwnQuotas {
  return fromJsonOrNull<OwnQuotas>(quotas) ?? {}
}

/** Returns one page, newest first. */
export async function listAccounts(db: Db, page: PageQuery): Promise<Page<Account>> {
  return readPage(db.selectFrom('accounts').selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc'), page, toAccount)
}

export async function listSuspendedAccountIds(db: Db): Promise<readonly string[]> {
  const rows = await db.selectFrom('accounts').select('id').where('status', '=', 'suspended').execute()
  return rows.map(({ id }) => id)
}

export async function isAccountSuspended(db: Db, id: string): Promise<boolean> {
  const suspended = db.selectFrom('accounts').select('id').where('id', '=', id).where('status', '=', 'suspended')
  return (await suspended.executeTakeFirst()) !== undefined
}

/** Changes the given fields. Nodes see all but a new name. Throws not_found, and conflict if the name, or a bucket, is taken. */
export async function updateAccount(db: ChangeTx, id: string, change: ChangeAccount): Promise<Account> {
  const row = await getRow(db, id)
  const before = toAccount(row)
  const { name = before.name, status = before.status, weight = before.weight } = change
  const quotas = change.quotas === undefined ? row.quotas : JSON.stringify(mergeQuotas(ownQuotas(row), change.quotas))
  const allowed_buckets =
    change.allowed_buckets === undefined ? row.allowed_buckets : await toBucketList(db, id, change.allowed_buckets)
  const values = { name, status, weight, quotas, allowed_buckets }
  const update = db.updateTable('accounts').set(values).where('id', '=', id)
  await translateErrors(update.execute(), { unique: nameTaken })
  const seenByNodes = ['status', 'weight', 'quotas', 'allowed_buckets'] as const
  const isSeenByNodes = seenByNodes.some((column) => values[column] !== row[column])
  if (isSeenByNodes) await touchEndpointsOfAccount(db, id)
  return toAccount({ ...row, ...values })
}

/** Returns the column for a list. Throws conflict if a part of it is below or above what another account has. */
async function toBucketList(db: ChangeTx, id: string, entries: readonly string[]): Promise<string | null> {
  if (entries.length === 0) return null
  const others = await db
    .selectFrom('accounts')
    .select(['name', 'allowed_buckets'])
    .where('id', '<>', id)
    .where('allowed_buckets', 'is not', null)
    .execute()
  for (const entry of entries) {
    for (const other of others) {
      const overlap = findOverlap(entry, fromJsonOrNull<string[]>(other.allowed_buckets) ?? [])
      if (overlap === undefined) continue
      throw new AppError('conflict', `${entry} overlaps ${overlap}, which the account "${other.name}" may use`)
    }
  }
  return JSON.stringify([...new Set(entries)])
}

function toAccount({ external_id: _, status, quotas, allowed_buckets, created_at, ...account }: Database['accounts']): Account {
  return {
    ...account,
    status: status as AccountStatus,
    quotas: quotasOf({ quotas }),
    allowed_buckets: fromJsonOrNull<string[]>(allowed_buckets) ?? [],
    created_at: toTime(created_at),
  }
}
