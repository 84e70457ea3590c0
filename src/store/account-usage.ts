/**
 * What nodes accepted for each account, by UTC day, and the use of all quotas.
 *
 * Law: a row has the newest counters of one start of ingest on one node. Counters only grow, so a report that arrives twice, or late,
 * changes nothing.
 */
import { isoTimestamp } from '#lib/clock.ts'
import { dayOf, endOfDay, type QuotaUse } from '#model/quota.ts'
import { getAccount } from './accounts.ts'
import { storeLimits } from './limits.ts'
import { countUse } from './quotas.ts'
import type { Db, Tx } from './store.ts'

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
      api_keys: { limit: quotas.api_keys, used: await countUse(db, account_id, 'api_keys') },
      bytes_per_day: { limit: quotas.bytes_per_day, used: sent.bytes, resets_at: isoTimestamp(endOfDay(now)) },
      records_per_second: { limit: quotas.records_per_second, used: sent.records_per_second },
    },
  }
}

/** Returns what the account sent today, and its rate as of recent reports. */
async function readSent(
  db: Db,
  account_id: string,
  now: number,
): Promise<{ readonly bytes: number; readonly records_per_second: number }> {
  const rows = await db
    .selectFrom('account_usage')
    .select(['bytes', 'records_per_second', 'reported_at'])
    .where('day', '=', dayOf(now))
    .where('account_id', '=', account_id)
    .execute()
  const recent = rows.filter(({ reported_at }) => now - reported_at <= storeLimits.rateMsMax)
  return {
    bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
    records_per_second: recent.reduce((sum, { records_per_second }) => sum + records_per_second, 0),
  }
}
