/**
 * Commits that were delivered and may not be in this database: it went back to an older state, or control refuses the machine that made them.
 *
 * Owns: since when they may be missing, by region. Does not own: who finds out (a restore, nodes, a refused call), and who brings them back
 * (`inlet commits rebuild`; control, if nothing else is in doubt than commits of nodes: control/upkeep/lost-commits.ts).
 * Law: what one node claims concerns its own region, and a bucket that cannot be read concerns its account alone. While commits may be missing,
 * no job begins: it would leave out segments, or read files that were merged and removed.
 */
import { type Selectable, sql } from 'kysely'
import { AppError } from '#errors.ts'
import { fromFlag, fromJsonOrNull, toTime } from '../columns.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'

/** A restore concerns the nodes of every region. */
const everyRegion = '*'

export type MissingCommits = Selectable<Database['missing_commits']>

/** Since when commits of a region may be missing (epoch ms), and whether control records them again by itself. */
export type Missing = { readonly since: number; readonly isAutomatic: boolean }

/**
 * Notes that commits delivered at `since` (epoch ms) or later may be missing, in one region or, for null, in all. `isAutomatic`: control records
 * them again by itself, unless somebody noted for another reason that an operator has to. `notBefore` (epoch ms): markers may still be written
 * until then, so a reading that began earlier does not count.
 */
export async function noteMissingCommits(
  db: Tx,
  region: string | null,
  since: number,
  now: number,
  { isAutomatic = false, notBefore = 0 }: { readonly isAutomatic?: boolean; readonly notBefore?: number } = {},
): Promise<void> {
  await db
    .insertInto('missing_commits')
    .values({ region: region ?? everyRegion, since, noted_at: now, automatic: fromFlag(isAutomatic), not_before: notBefore })
    .onConflict((conflict) =>
      conflict.column('region').doUpdateSet(({ eb, ref }) => {
        const choose = (column: 'since' | 'not_before', isBetter: '<' | '>') =>
          eb
            .case()
            .when(ref(`excluded.${column}`), isBetter, ref(`missing_commits.${column}`))
            .then(ref(`excluded.${column}`))
            .else(ref(`missing_commits.${column}`))
            .end()
        return {
          since: choose('since', '<'),
          noted_at: now,
          automatic: sql<number>`missing_commits.automatic * excluded.automatic`,
          not_before: choose('not_before', '>'),
          accounts: null,
        }
      }),
    )
    .execute()
}

/** Nothing was delivered before this time (epoch ms). */
export async function findFirstDelivery(db: Db): Promise<number> {
  const oldest = db.selectFrom('accounts').select(({ fn }) => fn.min('created_at').as('at'))
  return (await oldest.executeTakeFirstOrThrow()).at ?? 0
}

export async function listMissingCommits(db: Db): Promise<readonly MissingCommits[]> {
  return db.selectFrom('missing_commits').selectAll().orderBy('region').execute()
}

/** Returns what a rebuild that begins now can bring back: markers of the rest may still be written. */
export async function listReadableCommits(db: Db, now: number): Promise<readonly MissingCommits[]> {
  return (await listMissingCommits(db)).filter(({ not_before }) => not_before <= now)
}

/** Returns what control can bring back by itself: nothing while an operator has to decide for all regions. */
export async function listAutomaticCommits(db: Db, now: number): Promise<readonly MissingCommits[]> {
  const readable = await listReadableCommits(db, now)
  const all = await listMissingCommits(db)
  return readable.filter(({ region }) => findMissing(all, region)?.isAutomatic)
}

/** Returns of which accounts commits may be missing; undefined for all. */
export function accountsOf({ accounts }: MissingCommits): readonly string[] | undefined {
  return fromJsonOrNull<readonly string[]>(accounts) ?? undefined
}

/** Returns the accounts that may lack commits of the region. */
export function accountsLacking(rows: readonly MissingCommits[], region: string): 'all' | readonly string[] {
  const lacking = rowsOf(rows, region).map(accountsOf)
  const accounts = lacking.filter((some) => some !== undefined)
  return accounts.length < lacking.length ? 'all' : [...new Set(accounts.flat())]
}

function rowsOf(rows: readonly MissingCommits[], region: string): readonly MissingCommits[] {
  return rows.filter((row) => row.region === region || row.region === everyRegion)
}

/** Returns since when commits of the region may be missing, of this account or of any; undefined if it has all. */
export function findMissing(rows: readonly MissingCommits[], region: string, account_id?: string): Missing | undefined {
  const concerns = (row: MissingCommits) => account_id === undefined || (accountsOf(row)?.includes(account_id) ?? true)
  const own = rowsOf(rows, region).filter(concerns)
  if (own.length === 0) return undefined
  const since = Math.min(...own.map((row) => row.since))
  return { since, isAutomatic: own.every(({ automatic }) => automatic === 1) }
}

/**
 * Returns since when commits of an account may be missing, or of one of its endpoints; null if it has all. An endpoint may have lost all of its
 * commits, so nobody knows which ones a view had.
 */
export async function findMissingSinceOf(db: Db, account_id: string, endpoint_id?: string): Promise<string | null> {
  const missing = await listMissingCommits(db)
  // Nearly always there is none.
  if (missing.length === 0) return null
  const rows = await db
    .selectFrom('endpoints')
    .select('region')
    .distinct()
    .where('account_id', '=', account_id)
    .$if(endpoint_id !== undefined, (query) => query.where('id', '=', endpoint_id ?? ''))
    .execute()
  const since = rows.flatMap(({ region }) => findMissing(missing, region, account_id)?.since ?? [])
  return since.length === 0 ? null : toTime(Math.min(...since))
}

/** Throws conflict while commits of the account may be missing in the region. */
export async function requireAllCommits(db: Db, region: string, account_id: string): Promise<void> {
  const missing = findMissing(await listMissingCommits(db), region, account_id)
  if (missing === undefined) return
  const remedy = missing.isAutomatic
    ? 'control records them from the buckets; try again when the status of the endpoint no longer says so'
    : 'the operator has to run inlet commits rebuild first'
  throw new AppError('conflict', `the database may lack commits since ${toTime(missing.since)}: ${remedy}`)
}

/** Notes that a rebuild read all buckets but some of these accounts. What was noted since it began stays as it is. */
export async function narrowMissingCommits(
  db: Db,
  before: readonly MissingCommits[],
  accounts: readonly string[],
): Promise<void> {
  const only = { accounts: JSON.stringify(accounts) }
  for (const { region, noted_at } of before)
    await db.updateTable('missing_commits').set(only).where('region', '=', region).where('noted_at', '=', noted_at).execute()
}

/** Forgets what was noted before a rebuild began. What was noted since then stays. */
export async function clearMissingCommits(db: Db, before: readonly MissingCommits[]): Promise<void> {
  for (const { region, noted_at } of before)
    await db.deleteFrom('missing_commits').where('region', '=', region).where('noted_at', '=', noted_at).execute()
}
