/**
 * Losses that control has not looked for in the buckets yet: their segments may have been delivered, and not reported.
 *
 * Law: what is noted as searched was recorded and reported before the reading began. Losses that are confirmed are searched, too: receipts name
 * them for as long as commits are kept.
 */
import { inChunks } from '../chunks.ts'
import type { Db, Tx } from '../store.ts'

/** Accounts with such losses, and the regions of their endpoints. */
export type AccountToSearch = { readonly account_id: string; readonly region: string }

/** Returns accounts by id. `before` (epoch ms): only losses that were recorded and reported until then. */
export function listAccountsToSearch(db: Db, before: number): Promise<AccountToSearch[]> {
  return selectUnsearched(db, before)
    .innerJoin('endpoints', 'endpoints.id', 'losses.endpoint_id')
    .select(['losses.account_id', 'endpoints.region'])
    .distinct()
    .orderBy('losses.account_id')
    .orderBy('endpoints.region')
    .execute()
}

/** An endpoint with unsearched losses. */
export type EndpointToSearch = {
  readonly account_id: string
  readonly endpoint_id: string
  /** Losses to note. */
  readonly ids: readonly string[]
  /** The lowest seq that each node may not have reported; 0: unknown. */
  readonly nodes: ReadonlyMap<string, number>
  /** The first time at which one of them was reported or recorded (epoch ms). */
  readonly since: number
  /** The same of the last one. */
  readonly until: number
}

/** Returns the first endpoint of the account after the one with the id `after`, in some regions; undefined if none is left. */
export async function findEndpointToSearch(
  db: Db,
  {
    account_id,
    regions,
    after,
    before,
  }: { readonly account_id: string; readonly regions: readonly string[]; readonly after: string; readonly before: number },
): Promise<EndpointToSearch | undefined> {
  const next = await selectUnsearched(db, before)
    .innerJoin('endpoints', 'endpoints.id', 'losses.endpoint_id')
    .select('losses.endpoint_id')
    .where('losses.account_id', '=', account_id)
    .where('losses.endpoint_id', '>', after)
    .where('endpoints.region', 'in', regions)
    .orderBy('losses.endpoint_id')
    .limit(1)
    .executeTakeFirst()
  if (next === undefined) return undefined
  const rows = await selectUnsearched(db, before)
    .select(['losses.id', 'losses.node_id', 'losses.first_seq', 'losses.segments_unknown'])
    .select(['losses.reported_at', 'losses.recorded_at'])
    .where('losses.account_id', '=', account_id)
    .where('losses.endpoint_id', '=', next.endpoint_id)
    .execute()
  const nodes = new Map<string, number>()
  for (const { node_id, first_seq, segments_unknown } of rows) {
    const first = segments_unknown > 0 ? 0 : (first_seq ?? 0)
    nodes.set(node_id, Math.min(nodes.get(node_id) ?? first, first))
  }
  const times = rows.flatMap(({ reported_at, recorded_at }) => [reported_at, recorded_at])
  const [since, until] = [Math.min(...times), Math.max(...times)]
  return { account_id, endpoint_id: next.endpoint_id, ids: rows.map(({ id }) => id), nodes, since, until }
}

/** Says what a search left in doubt; null: nothing. */
export type SearchProblem = string | null

/**
 * Notes the losses of an endpoint that were read, with what was left in doubt. `searchedAt` (epoch ms); null: they are tried again. A loss that was
 * reported again after `before` stays as it is.
 */
export async function noteSearch(
  db: Tx,
  ids: readonly string[],
  {
    searchedAt,
    problem,
    before,
  }: { readonly searchedAt: number | null; readonly problem: SearchProblem; readonly before: number },
): Promise<void> {
  const set = { searched_at: searchedAt, search_problem: problem }
  for (const some of inChunks(ids))
    await db
      .updateTable('losses')
      .set(set)
      .where('id', 'in', some)
      .where('recorded_at', '<=', before)
      .where('reported_at', '<=', before)
      .execute()
}

/** Lets control look again for losses that a search left in doubt: of an account, whose destinations changed, of an endpoint, or of all. */
export async function searchAgain(
  db: Db,
  which: { readonly account_id?: string | undefined; readonly endpoint_id?: string | undefined },
): Promise<void> {
  const { account_id, endpoint_id } = which
  await db
    .updateTable('losses')
    .set({ searched_at: null })
    .where('search_problem', 'is not', null)
    .where('searched_at', 'is not', null)
    .$if(account_id !== undefined, (query) => query.where('account_id', '=', account_id ?? ''))
    .$if(endpoint_id !== undefined, (query) => query.where('endpoint_id', '=', endpoint_id ?? ''))
    .execute()
}

function selectUnsearched(db: Db, before: number) {
  return db
    .selectFrom('losses')
    .where('losses.searched_at', 'is', null)
    .where('losses.recovered_at', 'is', null)
    .where('losses.recorded_at', '<=', before)
    .where('losses.reported_at', '<=', before)
}
