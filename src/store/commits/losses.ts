/**
 * The ledger of loss: what was acknowledged and not delivered when a node lost its place.
 *
 * Owns: the rows, until they are recovered or confirmed. Does not own: the removal (nodes/node-removal.ts), the adoption
 * (nodes/node-credentials.ts), and what a machine says later of its disk (left-on-disk.ts).
 * Law: a row is an upper bound as of the last report of the node. No segment is in two open rows. It counts as missing until its commit is
 * recorded, whoever delivers it: the node itself, a machine that adopted its disk, or a rebuild from markers. A loss whose segments are not known
 * is never recovered: only its account ends it. Neither is one of which commits have fewer records than were reported.
 */
import { sql } from 'kysely'
import { AppError } from '#errors.ts'
import type { SegmentCommit } from '#model/commit.ts'
import { type Loss, LossCause, type LossesQuery, type LossState } from '#model/loss.ts'
import type { Page } from '#model/page.ts'
import { eventOutsideApi, insertAuditEvent } from '../accounts/audit-events.ts'
import { inChunks } from '../chunks.ts'
import { toTime, toTimeOrNull } from '../columns.ts'
import { readPage } from '../page.ts'
import { addTo, subtractFrom, sumOf } from '../safe-sums.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'

type LossRow = Database['losses']

/** Why a node loses what it holds, and the id of its loss with an endpoint. */
export type Losing = { readonly cause: LossCause; readonly idOf: (endpoint_id: string) => string }

/**
 * Records what the removal, the release or the adoption of a node may lose, and tells the accounts in their audit trails. Call it before the node
 * is deleted. Logs whose endpoint was deleted or is unknown have no owner to tell. Returns the number of losses.
 */
export async function recordLosses(db: Tx, node_id: string, { cause, idOf }: Losing, now: number): Promise<number> {
  const delivered = await countDelivered(db, node_id)
  const unrecovered = await listUnrecoveredOf(db, node_id)
  const open = Map.groupBy(
    unrecovered.filter((loss) => loss.confirmed_at === null),
    (loss) => loss.endpoint_id,
  )
  const accounts = new Set<string>()
  const added: LossRow[] = []
  let losses = 0
  for (const held of await listHeld(db, node_id)) {
    const { endpoint_id, account_id, node_name, node_region: region, last_seen_at } = held
    const bounds = boundsOf(held, delivered.get(endpoint_id), cause)
    if (bounds === undefined) continue
    losses += 1
    const reported_at = last_seen_at ?? now
    const known = open.get(endpoint_id)?.find((loss) => overlaps(loss, bounds))
    if (known !== undefined) {
      if (await growLoss(db, known, { ...bounds, reported_at })) accounts.add(account_id)
      continue
    }
    const owner = { id: idOf(endpoint_id), account_id, endpoint_id, node_id, node_name, region }
    const recovered = { segments_missing: bounds.segments, records_recovered: 0, bytes_recovered: 0 }
    const times = { reported_at, recorded_at: now, recovered_at: null, confirmed_at: null, confirmed_by: null }
    added.push({ ...owner, cause, ...bounds, ...recovered, ...times })
    accounts.add(account_id)
  }
  for (const some of inChunks(added)) await db.insertInto('losses').values(some).execute()
  for (const account_id of accounts) {
    const event = { actor: 'inlet', operation: 'recordLosses', account_id, resource_id: node_id } as const
    await insertAuditEvent(db, eventOutsideApi(event, now))
  }
  return losses
}

type Seqs = Pick<LossRow, 'first_seq' | 'last_seq'>
type Bounds = Seqs & Pick<LossRow, 'segments' | 'records' | 'bytes'>

/** Returns the bounds of what a log has not delivered; undefined for nothing. */
function boundsOf(
  { open_segments, undelivered_segments, parked_segments, quarantined_segments, ...log }: HeldLog,
  delivered: Delivered | undefined,
  cause: LossCause,
): Bounds | undefined {
  const { first_seq, last_seq, undelivered_bytes } = log
  // The machine that adopts a disk has its quarantine, too.
  const quarantined = cause === 'node_adopted' ? 0 : quarantined_segments
  const held = open_segments + undelivered_segments + parked_segments
  // Some may have been delivered after the report. Each seq is that of one segment.
  const range = first_seq === null || last_seq === null ? held : last_seq - first_seq + 1 - (delivered?.seqs ?? 0)
  const segments = Math.max(0, Math.min(held, range)) + quarantined
  if (segments === 0) return undefined
  // Reports do not count the records in quarantine.
  const records = log.records === null || quarantined > 0 ? null : Math.max(0, log.records - (delivered?.records ?? 0))
  return { first_seq, last_seq, segments, records, bytes: Math.max(0, undelivered_bytes - (delivered?.bytes ?? 0)) }
}

/** A node may lose its place twice with the same segments: adds what it has more now. Returns whether that is more. */
async function growLoss(
  db: Tx,
  known: LossRow,
  { reported_at, ...now }: Bounds & Pick<LossRow, 'reported_at'>,
): Promise<boolean> {
  const recovered = known.segments - known.segments_missing
  const segments = Math.max(known.segments, now.segments + recovered)
  const held = now.records === null ? null : now.records + known.records_recovered
  const records = combine(Math.max, known.records, held)
  const seqs = {
    first_seq: combine(Math.min, known.first_seq, now.first_seq),
    last_seq: combine(Math.max, known.last_seq, now.last_seq),
  }
  const bytes = Math.max(known.bytes, now.bytes + known.bytes_recovered)
  const change = { ...seqs, segments, segments_missing: segments - recovered, records, bytes, reported_at }
  await db.updateTable('losses').set(change).where('id', '=', known.id).execute()
  return segments > known.segments || (records ?? 0) > (known.records ?? 0)
}

/** Null if one of them is not known. */
function combine(choose: (one: number, other: number) => number, one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : choose(one, other)
}

/** Whether a loss may be of some of these segments. */
export function overlaps(loss: Seqs, { first_seq, last_seq }: Seqs): boolean {
  if (loss.first_seq === null || loss.last_seq === null || first_seq === null || last_seq === null) return true
  return loss.first_seq <= last_seq && loss.last_seq >= first_seq
}

/** Returns the losses of a node that are not recovered: open ones before those that were confirmed, the newest first. */
export async function listUnrecoveredOf(db: Db, node_id: string): Promise<readonly LossRow[]> {
  return db
    .selectFrom('losses')
    .selectAll()
    .where('node_id', '=', node_id)
    .where('recovered_at', 'is', null)
    .orderBy((eb) => eb.case().when('confirmed_at', 'is', null).then(0).else(1).end())
    .orderBy('recorded_at', 'desc')
    .execute()
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
    .select('node_processes.last_seen_at')
    .select(['open_segments', 'undelivered_segments', 'parked_segments', 'quarantined_segments', 'undelivered_bytes'])
    .select(['endpoint_lags.records', 'endpoint_lags.first_seq', 'endpoint_lags.last_seq'])
    .where('endpoint_lags.node_id', '=', node_id)
    .where('endpoints.deleted_at', 'is', null)
    .execute()
}

type Delivered = { readonly seqs: number; readonly records: number; readonly bytes: number }

/** Returns how many of the seqs that the node reported have a commit, by endpoint. */
async function countDelivered(db: Db, node_id: string): Promise<ReadonlyMap<string, Delivered>> {
  const rows = await db
    .selectFrom('endpoint_lags')
    .innerJoin('commits', (join) =>
      join
        .onRef('commits.endpoint_id', '=', 'endpoint_lags.endpoint_id')
        .onRef('commits.node_id', '=', 'endpoint_lags.node_id')
        .onRef('commits.seq', '>=', 'endpoint_lags.first_seq')
        .onRef('commits.seq', '<=', 'endpoint_lags.last_seq'),
    )
    .select('endpoint_lags.endpoint_id')
    .select(({ fn }) => fn.count<number>('commits.seq').distinct().as('seqs'))
    .select(sql<number>`cast(sum(commits.records) as bigint)`.as('records'))
    .select(sql<number>`cast(sum(commits.wal_bytes) as bigint)`.as('bytes'))
    .where('endpoint_lags.node_id', '=', node_id)
    .groupBy('endpoint_lags.endpoint_id')
    .execute()
  return new Map(
    rows.map(({ endpoint_id, seqs, records, bytes }) => [
      endpoint_id,
      { seqs: Number(seqs), records: Number(records), bytes: Number(bytes) },
    ]),
  )
}

/**
 * Counts a commit that is new in this database as recovered, if it is of a segment that was lost. A loss without seqs does not say which those
 * were, so none counts.
 */
export async function recoverLoss(db: Tx, commit: SegmentCommit, now: number): Promise<void> {
  const { node_id, endpoint_id, seq, records, wal_bytes } = commit
  await db
    .updateTable('losses')
    .set(({ ref, val }) => ({
      segments_missing: subtractFrom(ref('segments_missing'), 1),
      records_recovered: addTo(ref('records_recovered'), val(records)),
      bytes_recovered: addTo(ref('bytes_recovered'), val(wal_bytes)),
      // Fewer records than the disk had are not all.
      recovered_at: sql<number | null>`case when segments_missing <= 1
        and (records is null or records_recovered + cast(${records} as bigint) >= records)
        then cast(${now} as bigint) else null end`,
    }))
    .where(({ and }) => and({ endpoint_id, node_id }))
    .where('segments_missing', '>', 0)
    .where('first_seq', '<=', seq)
    .where('last_seq', '>=', seq)
    .execute()
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

/** Loss that neither was recovered nor confirmed. */
export type OpenLoss = Pick<LossRow, 'id' | 'endpoint_id' | 'node_id' | 'node_name' | 'records' | 'bytes' | 'first_seq'> & {
  readonly cause: LossCause
  readonly recorded_at: string
  readonly is_node_back: boolean
}

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
  readonly first_seq: number | null
  readonly last_seq: number | null
}

/**
 * Returns the newest loss that a segment may belong to: from its first one on, whatever its state. With `left_on_disk`: one of that cause which
 * has the segment and is not recovered.
 */
export async function findLossOf(
  db: Db,
  endpoint_id: string,
  { node_id, seq }: { readonly node_id: string; readonly seq: number },
  cause?: 'left_on_disk',
): Promise<FoundLoss | undefined> {
  let losses = db
    .selectFrom('losses')
    .select(['id', 'cause', 'first_seq', 'last_seq', 'recorded_at', 'recovered_at', 'confirmed_at'])
    .where(({ and }) => and({ endpoint_id, node_id }))
    .where(({ eb, or }) => or([eb('first_seq', 'is', null), eb('first_seq', '<=', seq)]))
  if (cause !== undefined)
    losses = losses.where('cause', '=', cause).where('last_seq', '>=', seq).where('recovered_at', 'is', null)
  const row = await losses.orderBy('recorded_at', 'desc').limit(1).executeTakeFirst()
  if (row === undefined) return undefined
  const { id, first_seq, last_seq, recorded_at } = row
  return { id, state: stateOf(row), cause: LossCause.parse(row.cause), recorded_at: toTime(recorded_at), first_seq, last_seq }
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
  return (
    db
      .selectFrom('losses')
      .innerJoin('endpoints', 'endpoints.id', 'losses.endpoint_id')
      // A released id has no node until one joins under it.
      .leftJoin('nodes', (join) => join.onRef('nodes.id', '=', 'losses.node_id').on('nodes.credential_hash', 'is not', null))
      .selectAll('losses')
      .select(['endpoints.name as endpoint_name', 'nodes.id as present_node'])
  )
}

function selectOpen(db: Db) {
  return db
    .selectFrom('losses')
    .leftJoin('nodes', (join) => join.onRef('nodes.id', '=', 'losses.node_id').on('nodes.credential_hash', 'is not', null))
    .select(['losses.id', 'endpoint_id', 'losses.node_id', 'node_name', 'records', 'bytes', 'first_seq', 'recorded_at'])
    .select(['cause', 'nodes.id as present_node'])
    .where('recovered_at', 'is', null)
    .where('confirmed_at', 'is', null)
}

type OpenRow = Omit<OpenLoss, 'recorded_at' | 'is_node_back' | 'cause'> & {
  readonly cause: string
  readonly recorded_at: number
  readonly present_node: string | null
}

function toOpenLoss({ present_node, recorded_at, ...row }: OpenRow): OpenLoss {
  const cause = LossCause.parse(row.cause)
  return { ...row, cause, recorded_at: toTime(recorded_at), is_node_back: isNodeBack(cause, present_node) }
}

/** The node that has the id now does not have what is on the disk of another machine. */
function isNodeBack(cause: LossCause, present_node: string | null): boolean {
  return cause !== 'left_on_disk' && present_node !== null
}

function stateOf({ recovered_at, confirmed_at }: Pick<LossRow, 'recovered_at' | 'confirmed_at'>): LossState {
  if (recovered_at !== null) return 'recovered'
  return confirmed_at === null ? 'open' : 'confirmed'
}

function toLoss(row: LossRow & { readonly endpoint_name: string; readonly present_node: string | null }): Loss {
  const {
    id,
    account_id,
    endpoint_id,
    endpoint_name,
    node_id,
    node_name,
    region,
    segments,
    segments_missing,
    records,
    bytes,
    confirmed_by,
  } = row
  const cause = LossCause.parse(row.cause)
  return {
    ...{ id, account_id, endpoint_id, endpoint_name, node_id, node_name, region, state: stateOf(row), cause },
    ...{ first_segment_seq: row.first_seq, last_segment_seq: row.last_seq, segments, records, bytes },
    reported_at: toTime(row.reported_at),
    recorded_at: toTime(row.recorded_at),
    is_node_back: isNodeBack(cause, row.present_node),
    recovered: { segments: segments - segments_missing, records: row.records_recovered, bytes: row.bytes_recovered },
    recovered_at: toTimeOrNull(row.recovered_at),
    confirmed_at: toTimeOrNull(row.confirmed_at),
    confirmed_by,
  }
}
