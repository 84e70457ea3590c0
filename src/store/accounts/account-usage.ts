/**
 * Usage that nodes counted for each account, by UTC day.
 *
 * Law: a row has the newest counters of one start of ingest on one node. Counters only grow, so a report that arrives twice, or late,
 * changes nothing. Of the starts of a day only the newest have a row; the older ones, which report no more, are one sum.
 */
import { sql } from 'kysely'
import { safeSum } from '#lib/safe-sum.ts'
import { dayMs } from '#lib/time-units.ts'
import type { AccountUsage, UsageReport, UsageTotals } from '#model/node-protocol.ts'
import { dayOf } from '#model/quota.ts'
import { inChunks } from '../chunks.ts'
import { storeLimits } from '../limits.ts'
import { sumOf } from '../safe-sums.ts'
import type { Db, Tx } from '../store.ts'

/** Returns what the account sent today, and its rate as of recent reports. */
export async function readSent(
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
  return { bytes: safeSum(rows.map(({ bytes }) => bytes)), records_per_second: currentRate(rows, now) }
}

/** The sum of the rates that are not over. The more nodes report an account, the less often each does. */
function currentRate(
  rows: readonly { readonly reported_at: number; readonly records_per_second: number }[],
  now: number,
): number {
  const { rateMsMin, rateMsPerRow, rateMsMax } = storeLimits
  const keptMs = Math.min(rateMsMax, Math.max(rateMsMin, rows.length * rateMsPerRow))
  const recent = rows.filter(({ reported_at }) => now - reported_at <= keptMs)
  return safeSum(recent.map(({ records_per_second }) => records_per_second))
}

/** Returns what the accounts that sent most today sent, and their rates as of recent reports. */
export async function listLargestUse(
  db: Db,
  now: number,
  count: number,
): Promise<readonly { readonly account_id: string; readonly bytes: number; readonly records_per_second: number }[]> {
  const largest = await db
    .selectFrom('account_usage')
    .select(['account_id', sumOf(sql.ref('bytes')).as('bytes')])
    .where('day', '=', dayOf(now))
    .groupBy('account_id')
    .orderBy('bytes', 'desc')
    .orderBy('account_id')
    .limit(count)
    .execute()
  if (largest.length === 0) return []
  const rows = await db
    .selectFrom('account_usage')
    .select(['account_id', 'records_per_second', 'reported_at'])
    .where('day', '=', dayOf(now))
    .where(
      'account_id',
      'in',
      largest.map(({ account_id }) => account_id),
    )
    .execute()
  const byAccount = Map.groupBy(rows, ({ account_id }) => account_id)
  return largest.map((use) => ({ ...use, records_per_second: currentRate(byAccount.get(use.account_id) ?? [], now) }))
}

/**
 * Stores the counters of a report. Skips accounts without an endpoint in the regions that the node serves, and days that are long over
 * or far ahead: a node can use up only quotas of accounts that it serves.
 */
export async function recordUsage(db: Tx, { node_id, run, accounts }: UsageReport, now: number): Promise<void> {
  const days = [now - dayMs, now, now + dayMs].map(dayOf)
  const reported = new Map(accounts.map((one) => [`${one.account_id} ${one.day}`, one]))
  const current = [...reported.values()].filter(({ day }) => days.includes(day))
  for (const some of inChunks(current)) {
    const served = await listServedAccounts(db, node_id, some)
    const rows = some.flatMap((one) => (served.has(one.account_id) ? [{ ...one, node_id, run, reported_at: now }] : []))
    if (rows.length === 0) continue
    await foldOldRuns(db, node_id, run, rows)
    await db
      .insertInto('account_usage')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['day', 'account_id', 'node_id', 'run'])
          .doUpdateSet(({ ref }) => ({
            bytes: ref('excluded.bytes'),
            records: ref('excluded.records'),
            records_per_second: ref('excluded.records_per_second'),
            reported_at: ref('excluded.reported_at'),
          }))
          .whereRef('account_usage.records', '<', 'excluded.records'),
      )
      .execute()
  }
}

/** Returns what all nodes accepted, for the accounts and days of a report. */
export async function sumUsage(db: Db, reported: readonly AccountUsage[]): Promise<UsageTotals['accounts']> {
  const totals: UsageTotals['accounts'] = []
  for (const [day, accounts] of Map.groupBy(reported, (one) => one.day))
    for (const some of inChunks([...new Set(accounts.map(({ account_id }) => account_id))]))
      totals.push(
        ...(await db
          .selectFrom('account_usage')
          .select(['day', 'account_id', sumOf(sql.ref('bytes')).as('bytes')])
          .where('day', '=', day)
          .where('account_id', 'in', some)
          .groupBy(['day', 'account_id'])
          .execute()),
      )
  return totals
}

/**
 * Removes the counters of one account and day before that of `now` (epoch ms), except the last day: late reports of it are still counted.
 * Returns their number.
 */
export async function removeUsageBefore(db: Db, now: number): Promise<number> {
  const oldest = await db
    .selectFrom('account_usage')
    .select(['day', 'account_id'])
    .where('day', '<', dayOf(now - dayMs))
    .orderBy('day')
    .orderBy('account_id')
    .limit(1)
    .executeTakeFirst()
  if (oldest === undefined) return 0
  const { numDeletedRows } = await db
    .deleteFrom('account_usage')
    .where(({ and }) => and({ day: oldest.day, account_id: oldest.account_id }))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** The sum of older runs. A node cannot name it. */
const folded = ''

/** Makes room for a run that is new: a node chooses the names of its runs, and could otherwise add rows without end. */
async function foldOldRuns(db: Tx, node_id: string, run: string, reported: readonly AccountUsage[]): Promise<void> {
  const stored = await db
    .selectFrom('account_usage')
    .selectAll()
    .where('day', 'in', [...new Set(reported.map(({ day }) => day))])
    .where(
      'account_id',
      'in',
      reported.map(({ account_id }) => account_id),
    )
    .where('node_id', '=', node_id)
    .execute()
  const runsOf = Map.groupBy(stored, ({ account_id, day }) => `${account_id} ${day}`)
  for (const { account_id, day } of reported) {
    const rows = runsOf.get(`${account_id} ${day}`) ?? []
    if (rows.length < storeLimits.usageRunsMax || rows.some((row) => row.run === run)) continue
    const byAge = rows.toSorted(
      (one, other) => Number(other.run === folded) - Number(one.run === folded) || one.reported_at - other.reported_at,
    )
    const [sum, oldest] = byAge
    if (sum === undefined || oldest === undefined) continue
    await db
      .deleteFrom('account_usage')
      .where(({ and }) => and({ day, account_id, node_id }))
      .where('run', 'in', [sum.run, oldest.run])
      .execute()
    const both = {
      bytes: safeSum([sum.bytes, oldest.bytes]),
      records: safeSum([sum.records, oldest.records]),
    }
    await db
      .insertInto('account_usage')
      .values({ ...{ day, account_id, node_id, run: folded, records_per_second: 0, reported_at: oldest.reported_at }, ...both })
      .execute()
  }
}

async function listServedAccounts(db: Db, node_id: string, reported: readonly AccountUsage[]): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('endpoints')
    .select('account_id')
    .distinct()
    .where('region', 'in', ({ selectFrom }) => selectFrom('node_snapshots').select('region').where('node_id', '=', node_id))
    .where(
      'account_id',
      'in',
      reported.map(({ account_id }) => account_id),
    )
    .where('deleted_at', 'is', null)
    .execute()
  return new Set(rows.map(({ account_id }) => account_id))
}
