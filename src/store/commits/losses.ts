/**
 * The ledger of loss: what was acknowledged and not delivered when a node lost its place.
 *
 * Owns: what a node had reported, and how losses end. Does not own: the removal (nodes/node-removal.ts), the adoption
 * (nodes/node-credentials.ts), what a machine says later of its disk (left-on-disk.ts), and how both are recorded (loss-rows.ts).
 * Law: a row is an upper bound as of the last report of the node. A segment counts as missing until its commit is recorded, whoever delivers
 * it: the node itself, a machine that adopted its disk, or a rebuild from markers. No commit of another segment recovers a loss. One whose segments
 * are not known is never recovered: only its account ends it. Neither is one of which commits have fewer records than were reported.
 */
import { sql } from 'kysely'
import { AppError } from '#errors.ts'
import { safeSum } from '#lib/safe-sum.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { HeldSegments } from '#model/held-segments.ts'
import { type Loss, LossCause, type LossesQuery, type LossState } from '#model/loss.ts'
import { describeLost } from '#model/lost-records.ts'
import type { Page } from '#model/page.ts'
import { inChunks } from '../chunks.ts'
import { toTime, toTimeOrNull } from '../columns.ts'
import { readPage } from '../page.ts'
import { sumOf } from '../safe-sums.ts'
import type { Database } from '../schema.ts'
import { type Db, type Store, type Tx, transact } from '../store.ts'
import { listCommitted } from './log-commits.ts'
import { type Held, lockCommitsOf, noBounds, openLosses } from './loss-rows.ts'
import { addCommits, findLossRun, missingOf, parseLossRuns, printLossRuns, sumMissing } from './loss-runs.ts'

type LossRow = Database['losses']

/** The machine that loses its place, by the hash of its credential, and why. */
export type Losing = { readonly cause: LossCause; readonly credential_hash: string | null }

/**
 * Records what the removal, the release or the adoption of a node may lose, and tells the accounts in their audit trails. Call it before the node
 * is deleted. Logs whose endpoint was deleted or is unknown have no owner to tell. Returns the number of losses.
 */
export async function recordLosses(db: Tx, node_id: string, { cause, credential_hash }: Losing, now: number): Promise<number> {
  await lockCommitsOf(db, node_id)
  const losses = await openLosses(db, { node_id, credential_hash }, now)
  for (const log of await listHeld(db, node_id)) {
    const { endpoint_id, account_id, node_name, node_region: region } = log
    const held = await heldBy(db, { ...log, node_id }, cause)
    if (held === undefined) continue
    const owner = { endpoint_id, account_id, node_name, region }
    await losses.put(owner, { ...held, cause, reported_at: countedAt(log) ?? now, isExact: false })
  }
  return losses.end()
}

/** As of when the counts of a log are. Nodes of an earlier release do not say: then they are not later than the heartbeat. */
function countedAt({ log_counted_at, counted_at, last_seen_at }: HeldLog): number | null {
  return log_counted_at ?? counted_at ?? last_seen_at
}

/** Returns what a log has not delivered; undefined for nothing. */
async function heldBy(
  db: Db,
  {
    open_segments,
    undelivered_segments,
    parked_segments,
    quarantined_segments,
    held,
    ...log
  }: HeldLog & { readonly node_id: string },
  cause: LossCause,
): Promise<Omit<Held, 'cause' | 'reported_at' | 'isExact'> | undefined> {
  // The machine that adopts a disk has its quarantine, too. Copies may lack it.
  const quarantined = cause === 'node_adopted' ? 0 : quarantined_segments
  const segments = open_segments + undelivered_segments + parked_segments
  const known = heldSegmentsOf({ ...log, held }, segments)
  // Some may have been delivered after the report.
  const runs = missingOf(known ?? [], await listCommitted(db, log, known ?? []))
  const uncounted = isUnlisted({ ...log, held }) ? 1 : Math.max(0, segments - countHeld(known ?? []))
  const segments_unknown = quarantined + uncounted
  const quarantinedBounds = { first_seq: log.quarantined_first_seq, last_seq: log.quarantined_last_seq }
  if (runs.length === 0 && segments_unknown === 0) return undefined
  const delivered = safeSum((known ?? []).map((each) => each.bytes)) - sumMissing(runs).bytes
  return {
    ...{ runs, segments_unknown, bytes: Math.max(0, log.undelivered_bytes - delivered) },
    boundsUnknown: uncounted > 0 || quarantined === 0 ? noBounds : quarantinedBounds,
    // Reports do not count the records in quarantine.
    records_unknown: segments_unknown === 0 ? 0 : quarantined > 0 || known !== undefined ? null : log.records,
  }
}

/** Whether the node could not list the log, and does not know what it has. */
function isUnlisted({ held, records }: Pick<HeldLog, 'held' | 'records'>): boolean {
  return held === '[]' && records === null
}

function countHeld(held: readonly HeldSegments[]): number {
  return safeSum(held.map(({ segments }) => segments))
}

/** Returns the segments that the node reported to hold; undefined if it does not say which. One of an earlier release says the first and the last. */
function heldSegmentsOf(
  {
    held,
    first_seq,
    last_seq,
    records,
    undelivered_bytes: bytes,
  }: Pick<HeldLog, 'held' | 'first_seq' | 'last_seq' | 'records' | 'undelivered_bytes'>,
  segments: number,
): readonly HeldSegments[] | undefined {
  if (held !== null) return JSON.parse(held) as readonly HeldSegments[]
  if (segments === 0) return []
  return first_seq === null || last_seq === null ? undefined : [{ first_seq, last_seq, segments, records, bytes }]
}

type HeldLog = Awaited<ReturnType<typeof listHeld>>[number]

/** Returns the logs of the node with segments, whose endpoints exist. */
function listHeld(db: Db, node_id: string) {
  return db
    .selectFrom('endpoint_lags')
    .innerJoin('endpoints', 'endpoints.id', 'endpoint_lags.endpoint_id')
    .innerJoin('nodes', 'nodes.id', 'endpoint_lags.node_id')
    .leftJoin('node_processes', (join) =>
      join.onRef('node_processes.node_id', '=', 'endpoint_lags.node_id').on('node_processes.process', '=', 'delivery'),
    )
    .select(['endpoint_lags.endpoint_id', 'endpoints.account_id', 'nodes.region as node_region', 'nodes.name as node_name'])
    .select(['node_processes.last_seen_at', 'node_processes.counted_at', 'endpoint_lags.counted_at as log_counted_at'])
    .select(['open_segments', 'undelivered_segments', 'parked_segments', 'quarantined_segments', 'undelivered_bytes'])
    .select(['endpoint_lags.records', 'endpoint_lags.first_seq', 'endpoint_lags.last_seq', 'endpoint_lags.held'])
    .select(['quarantined_first_seq', 'quarantined_last_seq'])
    .where('endpoint_lags.node_id', '=', node_id)
    .where('endpoints.deleted_at', 'is', null)
    .execute()
}

/** Counts a commit that is new in this database, if its segment is one of those that were lost. Call it with the commits of the node locked. */
export async function recoverLoss(db: Tx, commit: SegmentCommit, now: number): Promise<void> {
  for (const loss of await selectAround(db, commit).selectAll().execute()) {
    const before = parseLossRuns(loss.runs)
    if (findLossRun(before, commit.seq) === undefined) continue
    const runs = addCommits(before, [commit])
    const [was, is] = [sumMissing(before), sumMissing(runs)]
    const records = was.records === null || is.records === null ? commit.records : was.records - is.records
    const segments_missing = safeSum([is.segments, loss.segments_unknown])
    const change = {
      ...{ runs: printLossRuns(runs), segments_missing },
      records_recovered: safeSum([loss.records_recovered, records]),
      bytes_recovered: safeSum([loss.bytes_recovered, was.bytes - is.bytes]),
      recovered_at: segments_missing === 0 ? now : null,
    }
    await db.updateTable('losses').set(change).where('id', '=', loss.id).execute()
  }
}

/** Counts a commit that is too old to be kept. Its segment was delivered all the same. */
export async function recoverLossBefore(store: Store, commit: SegmentCommit, now: number): Promise<void> {
  // Nearly all old commits are of no loss.
  if ((await selectAround(store.db, commit).select('id').executeTakeFirst()) === undefined) return
  await transact(store, async (db) => {
    await lockCommitsOf(db, commit.node_id)
    await recoverLoss(db, commit, now)
  })
}

/** Selects losses that may miss the segment. */
function selectAround(db: Db, { node_id, endpoint_id, seq }: Pick<SegmentCommit, 'node_id' | 'endpoint_id' | 'seq'>) {
  return db
    .selectFrom('losses')
    .where(({ and }) => and({ endpoint_id, node_id }))
    .where('first_seq', '<=', seq)
    .where('last_seq', '>=', seq)
    .where('recovered_at', 'is', null)
}

/** Returns one page of the losses of an account, or of all, newest first. */
export async function listLosses(
  db: Db,
  account_id: string | undefined,
  { state, endpoint_id, ...page }: LossesQuery,
): Promise<Page<Loss>> {
  let losses = selectLosses(db)
  if (account_id !== undefined) losses = losses.where('losses.account_id', '=', account_id)
  if (endpoint_id !== undefined) losses = losses.where('losses.endpoint_id', '=', endpoint_id)
  if (state === 'recovered') losses = losses.where('recovered_at', 'is not', null)
  else if (state !== undefined)
    losses = losses.where('recovered_at', 'is', null).where('confirmed_at', state === 'open' ? 'is' : 'is not', null)
  return readPage(losses.orderBy('recorded_at', 'desc').orderBy('losses.id'), page, toLoss)
}

/**
 * Accepts a loss, of any account if none is given. One that was confirmed before keeps its time, and is not new. Throws not_found, and conflict
 * for one that is recovered.
 */
export async function confirmLoss(
  db: Tx,
  account_id: string | undefined,
  id: string,
  by: string,
  now: number,
): Promise<{ readonly loss: Loss; readonly isNew: boolean }> {
  const confirmed = await confirmOpen(db, { id, ...(account_id !== undefined && { account_id }) }, by, now)
  const row = await selectLosses(db).where('losses.id', '=', id).executeTakeFirst()
  if (row === undefined || (account_id ?? row.account_id) !== row.account_id) throw new AppError('not_found', 'no such loss')
  const loss = toLoss(row)
  if (loss.confirmed_at === null)
    throw new AppError('conflict', `the loss was recovered at ${loss.recovered_at}: there is nothing to confirm`)
  return { loss, isNew: confirmed > 0 }
}

/** Accepts the open losses of an endpoint that is deleted by force: that gives up what was not delivered. */
export async function confirmLossesOf(db: Tx, endpoint_id: string, by: string, now: number): Promise<void> {
  await confirmOpen(db, { endpoint_id }, by, now)
}

/** Returns the number of losses. */
async function confirmOpen(
  db: Tx,
  which: Partial<Pick<LossRow, 'id' | 'account_id' | 'endpoint_id'>>,
  by: string,
  now: number,
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('losses')
    .set({ confirmed_at: now, confirmed_by: by })
    .where(({ and }) => and(which))
    .where('confirmed_at', 'is', null)
    .where('recovered_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}

/** Whether control has looked for a loss in the buckets, and what was left in doubt. */
export type SearchState = { readonly is_searched: boolean; readonly search_problem: string | null }

/** Loss that neither was recovered nor confirmed. */
export type OpenLoss = Pick<LossRow, 'id' | 'endpoint_id' | 'node_id' | 'node_name' | 'records' | 'bytes' | 'first_seq'> & {
  readonly cause: LossCause
  readonly recorded_at: string
  readonly reported_at: string
  readonly is_node_back: boolean
} & SearchState

/** Returns the open losses of these endpoints. */
export async function listOpenLosses(db: Db, endpointIds: readonly string[]): Promise<readonly OpenLoss[]> {
  const losses: OpenLoss[] = []
  for (const ids of inChunks(endpointIds)) {
    const rows = await selectOpen(db).where('losses.endpoint_id', 'in', ids).orderBy('recorded_at').orderBy('losses.id').execute()
    losses.push(...rows.map(toOpenLoss))
  }
  return losses
}

/** Returns the same for all endpoints of an account. */
export async function listOpenLossesOfAccount(db: Db, account_id: string): Promise<readonly OpenLoss[]> {
  const rows = await selectOpen(db)
    .where('losses.account_id', '=', account_id)
    .orderBy('recorded_at')
    .orderBy('losses.id')
    .execute()
  return rows.map(toOpenLoss)
}

export type FoundLoss = {
  readonly id: string
  readonly state: LossState
  readonly cause: LossCause
  readonly recorded_at: string
  readonly reported_at: string
  readonly last_seq: number | null
  /** Whether the segment is, or may be, one of those that are missing. What is between them was delivered, maybe so long ago that its commit is gone. */
  readonly isMissing: boolean
  /** Neighbours of the segment of which some, or all, are not delivered whole; undefined if it is none of them. */
  readonly partial: readonly [first: number, last: number] | undefined
} & SearchState

/**
 * Returns the loss that a segment belongs to: the newest that misses it or has not all of it, or else the newest that begins before it, because a
 * node may have begun segments after its last report.
 */
export async function findLossOf(
  db: Db,
  endpoint_id: string,
  { node_id, seq }: { readonly node_id: string; readonly seq: number },
): Promise<FoundLoss | undefined> {
  const rows = await db
    .selectFrom('losses')
    .selectAll()
    .where(({ and }) => and({ endpoint_id, node_id }))
    .where(({ eb, or }) => or([eb('first_seq', 'is', null), eb('first_seq', '<=', seq)]))
    .orderBy('recorded_at', 'desc')
    .execute()
  const findRun = ({ runs }: LossRow) => findLossRun(parseLossRuns(runs), seq)
  const row = rows.find((each) => findRun(each) !== undefined) ?? rows[0]
  if (row === undefined) return undefined
  const run = findRun(row)
  const { id, last_seq, search_problem } = row
  const times = { recorded_at: toTime(row.recorded_at), reported_at: toTime(row.reported_at) }
  const found = { id, state: stateOf(row), cause: LossCause.parse(row.cause), ...times, last_seq }
  const mayBeUnknown = row.segments_unknown > 0 && seq <= (last_seq ?? seq)
  return {
    ...found,
    isMissing: run !== undefined || mayBeUnknown,
    partial: row.recovered_at === null && run !== undefined ? [run.first_seq, run.last_seq] : undefined,
    ...{ search_problem, is_searched: row.searched_at !== null },
  }
}

export type LossTotals = { readonly losses: number; readonly records: number; readonly bytes: number }

/** Returns what is lost and not confirmed, over all accounts. */
export async function sumOpenLosses(db: Db): Promise<LossTotals> {
  return db
    .selectFrom('losses')
    .select(sql<number>`cast(count(*) as bigint)`.as('losses'))
    .select(sql<number>`coalesce(${sumOf(sql<number>`losses.records`)}, 0)`.as('records'))
    .select(sql<number>`coalesce(${sumOf(sql<number>`losses.bytes`)}, 0)`.as('bytes'))
    .where('recovered_at', 'is', null)
    .where('confirmed_at', 'is', null)
    .executeTakeFirstOrThrow()
}

/** Removes losses that ended before `before` (epoch ms). Open ones stay. */
export async function removeLossesEndedBefore(db: Db, before: number): Promise<void> {
  await db
    .deleteFrom('losses')
    .where(({ eb, or }) => or([eb('recovered_at', '<', before), eb('confirmed_at', '<', before)]))
    .execute()
}

function selectLosses(db: Db) {
  return db
    .selectFrom('losses')
    .innerJoin('endpoints', 'endpoints.id', 'losses.endpoint_id')
    .selectAll('losses')
    .select('endpoints.name as endpoint_name')
    .select(isNodeBack.as('is_node_back'))
}

function selectOpen(db: Db) {
  return db
    .selectFrom('losses')
    .select(['losses.id', 'endpoint_id', 'losses.node_id', 'node_name', 'records', 'bytes', 'first_seq', 'cause'])
    .select(['recorded_at', 'reported_at'])
    .select(isNodeBack.as('is_node_back'))
    .select(['searched_at', 'search_problem'])
    .where('recovered_at', 'is', null)
    .where('confirmed_at', 'is', null)
}

type OpenRow = Omit<OpenLoss, 'recorded_at' | 'reported_at' | 'is_node_back' | 'is_searched' | 'cause'> & {
  readonly cause: string
  readonly recorded_at: number
  readonly reported_at: number
  readonly is_node_back: number
  readonly searched_at: number | null
}

function toOpenLoss({ is_node_back, searched_at, recorded_at, reported_at, ...row }: OpenRow): OpenLoss {
  const facts = { is_node_back: is_node_back > 0, is_searched: searched_at !== null }
  const times = { recorded_at: toTime(recorded_at), reported_at: toTime(reported_at) }
  return { ...row, ...facts, cause: LossCause.parse(row.cause), ...times }
}

/**
 * Counts nodes that deliver what is lost: the machine itself is back, or another one has adopted its disk, or is at its copies. Another one under its
 * id does not, be it after a release.
 */
const isNodeBack = sql<number>`(select count(*) from nodes where nodes.id = losses.node_id and nodes.credential_hash is not null
  and nodes.credential_revoked_at is null and losses.cause <> 'left_on_disk' and (losses.cause <> 'node_taken_over'
    or exists (select 1 from take_overs where take_overs.node_id = nodes.id
      and take_overs.holder_node_id is not null and take_overs.ended_at is null))
  and not exists (select 1 from former_credentials as released where released.node_id = nodes.id
    and released.fence = 'node_released' and released.ended_at > losses.recorded_at)
  and (losses.cause in ('node_adopted', 'node_taken_over') or losses.credential_hash is null
    or losses.credential_hash = nodes.credential_hash or exists (select 1 from former_credentials as former
      where former.node_id = nodes.id and former.credential_hash = losses.credential_hash and former.fence = 'node_adopted'
        and not exists (select 1 from former_credentials as later where later.node_id = nodes.id
          and later.fence = 'node_released' and later.ended_at >= former.ended_at))))`

function stateOf({ recovered_at, confirmed_at }: Pick<LossRow, 'recovered_at' | 'confirmed_at'>): LossState {
  if (recovered_at !== null) return 'recovered'
  return confirmed_at === null ? 'open' : 'confirmed'
}

function toLoss(row: LossRow & { readonly endpoint_name: string; readonly is_node_back: number }): Loss {
  const { id, account_id, endpoint_id, endpoint_name, node_id, node_name, region, segments, records, bytes, confirmed_by } = row
  const cause = LossCause.parse(row.cause)
  const reported_at = toTime(row.reported_at)
  return {
    ...{ id, account_id, endpoint_id, endpoint_name, node_id, node_name, region, state: stateOf(row), cause },
    ...{ first_segment_seq: row.first_seq, last_segment_seq: row.last_seq, segments, records, bytes, reported_at },
    summary: describeLost({ records, bytes, reported_at, cause }),
    recorded_at: toTime(row.recorded_at),
    is_node_back: row.is_node_back > 0,
    searched_at: toTimeOrNull(row.searched_at),
    search_problem: row.search_problem,
    recovered: recoveredOf(row),
    recovered_at: toTimeOrNull(row.recovered_at),
    confirmed_at: toTimeOrNull(row.confirmed_at),
    confirmed_by,
  }
}

function recoveredOf({ segments, segments_missing, records, bytes, records_recovered, bytes_recovered }: LossRow) {
  return {
    segments: segments - segments_missing,
    records: Math.min(records_recovered, records ?? Number.MAX_SAFE_INTEGER),
    bytes: Math.min(bytes_recovered, bytes),
  }
}
