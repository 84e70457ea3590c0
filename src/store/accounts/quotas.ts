/**
 * The quotas of accounts: their use, and the check of those on what exists at the same time. Nodes check the others.
 *
 * Law: one creation of an account at a time is checked, in the transaction that creates. So concurrent ones cannot exceed a quota together.
 */
import { AppError } from '#errors.ts'
import { must } from '#lib/assert.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { type CountedQuota, endOfDay, type QuotaUse } from '#model/quota.ts'
import { countRows } from '../page.ts'
import type { Db, Tx } from '../store.ts'
import { readSent } from './account-usage.ts'
import { getAccount, quotasOf } from './accounts.ts'

const retryAfterSeconds = 60

/** How an owner makes room, and what the quota counts. */
const remedies: Readonly<Record<CountedQuota, readonly [noun: string, remedy: string]>> = {
  endpoints: ['endpoints', 'delete one that is not needed'],
  views: ['views that are not archived', 'archive one that is not needed'],
  view_versions: ['versions of views', 'delete drafts that are not needed'],
  api_keys: ['API keys that are not revoked', 'revoke one that is not needed'],
}

/** Runs `work`. Throws quota_exceeded if that takes the account above one of these quotas: then the transaction must end. */
export async function withinQuotas<T>(
  db: Tx,
  account_id: string,
  names: readonly CountedQuota[],
  work: () => Promise<T>,
): Promise<T> {
  // Changes nothing, but locks the row in both databases.
  const locked = await db
    .updateTable('accounts')
    .set(({ ref }) => ({ weight: ref('weight') }))
    .where('id', '=', account_id)
    .returning('quotas')
    .executeTakeFirst()
  const quotas = quotasOf(must(locked, 'the account'))
  const before = new Map<CountedQuota, number>()
  for (const name of names) before.set(name, await countUse(db, account_id, name))
  const result = await work()
  for (const [name, had] of before) {
    const has = await countUse(db, account_id, name)
    if (has > had && has > quotas[name]) throw exceeded(name, had, quotas[name])
  }
  return result
}

function exceeded(quota: CountedQuota, used: number, limit: number): AppError {
  const [noun, remedy] = remedies[quota]
  const message = `the account has ${used} ${noun}, and its quota is ${limit}: ${remedy}, or ask the operator of this installation for more`
  return new AppError('quota_exceeded', message, { quota, retryAfterSeconds })
}

export async function countUse(db: Db, account_id: string, name: CountedQuota): Promise<number> {
  switch (name) {
    case 'endpoints': {
      const endpoints = db.selectFrom('endpoints').where('account_id', '=', account_id).where('deleted_at', 'is', null)
      return countRows(endpoints)
    }
    case 'views': {
      const views = db.selectFrom('views').where('account_id', '=', account_id).where('status', '!=', 'archived')
      return (await views.select(({ fn }) => fn.count<number>('name').distinct().as('count')).executeTakeFirstOrThrow()).count
    }
    case 'view_versions': {
      const versions = db.selectFrom('views').where('account_id', '=', account_id)
      return countRows(versions)
    }
    case 'api_keys': {
      const keys = db.selectFrom('api_keys').where('account_id', '=', account_id).where('revoked_at', 'is', null)
      return countRows(keys)
    }
  }
}

/** Returns the quotas of an account with their use. Throws not_found. */
export async function readQuotaUse(db: Tx, account_id: string, now: number): Promise<QuotaUse> {
  const { weight, quotas } = await getAccount(db, account_id)
  const sent = await readSent(db, account_id, now)
  return {
    account_id,
    weight,
    quotas: {
      endpoints: { limit: quotas.endpoints, used: await countUse(db, account_id, 'endpoints') },
      views: { limit: quotas.views, used: await countUse(db, account_id, 'views') },
      view_versions: { limit: quotas.view_versions, used: await countUse(db, account_id, 'view_versions') },
      api_keys: { limit: quotas.api_keys, used: await countUse(db, account_id, 'api_keys') },
      bytes_per_day: { limit: quotas.bytes_per_day, used: sent.bytes, resets_at: isoTimestamp(endOfDay(now)) },
      records_per_second: { limit: quotas.records_per_second, used: sent.records_per_second },
    },
  }
}
