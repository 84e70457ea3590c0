/**
 * Losses of a machine that lost its place: what is on its disk and nowhere else.
 *
 * Owns: comparing its segments with the commits, and one loss for each machine and endpoint. Does not own: how a loss ends (losses.ts).
 * Law: a report only adds. What is missing from a later one may have been moved away by hand, and is not delivered by that.
 */
import { createHash } from 'node:crypto'
import type { LeftSegments } from '#model/left-on-disk.ts'
import type { LossCause } from '#model/loss.ts'
import { eventOutsideApi, insertAuditEvent } from '../accounts/audit-events.ts'
import { inChunks } from '../chunks.ts'
import type { LossTables } from '../loss-tables.ts'
import type { Db, Tx } from '../store.ts'
import { listUnrecoveredOf, overlaps } from './losses.ts'

/** A machine by the credential that control refuses. */
export type FormerMachine = {
  readonly node_id: string
  readonly region: string | null
  readonly credential_hash: string
  /** Its node was removed, so no other machine has its place, and it may come back. */
  readonly isRemoved: boolean
}

type LossRow = LossTables['losses']
type Bounds = Pick<LossRow, 'segments' | 'records' | 'bytes'> & { readonly first_seq: number; readonly last_seq: number }

/** Returns the id of the loss of this machine with the endpoint. */
export function machineLossId(
  { node_id, credential_hash }: Pick<FormerMachine, 'node_id' | 'credential_hash'>,
  endpoint_id: string,
): string {
  const digest = createHash('sha256').update(`${node_id} ${credential_hash} ${endpoint_id}`).digest('hex')
  // RFC 9562 §5.8: version 8, made by the application.
  const [a, b, c, d, e] = [
    digest.slice(0, 8),
    digest.slice(8, 12),
    digest.slice(13, 16),
    digest.slice(17, 20),
    digest.slice(20, 32),
  ]
  return `${a}-${b}-8${c}-8${d}-${e}`
}

/** Records what no commit has. Returns the number of endpoints with such records. Idempotent. */
export async function recordLeftOnDisk(
  db: Tx,
  machine: FormerMachine,
  left: readonly LeftSegments[],
  now: number,
): Promise<number> {
  await lockMachine(db, machine)
  const logs = Map.groupBy(left, ({ endpoint_id }) => endpoint_id)
  const accounts = new Set<string>()
  const known = Map.groupBy(await listUnrecoveredOf(db, machine.node_id), (loss) => loss.endpoint_id)
  let losses = 0
  for (const { id: endpoint_id, account_id } of await listOwners(db, machine, [...logs.keys()])) {
    const bounds = await findMissing(db, machine.node_id, endpoint_id, logs.get(endpoint_id) ?? [])
    if (bounds === undefined) continue
    losses += 1
    if (await upsertLoss(db, { machine, known: known.get(endpoint_id) ?? [], now }, { endpoint_id, account_id }, bounds))
      accounts.add(account_id)
  }
  for (const account_id of accounts) {
    const event = { actor: 'inlet', operation: 'recordLosses', account_id, resource_id: machine.node_id } as const
    await insertAuditEvent(db, eventOutsideApi(event, now))
  }
  return losses
}

/** Reports of one machine are recorded one after another. An update that changes nothing: SQLite has no `for update`. */
async function lockMachine(db: Tx, { node_id, credential_hash }: FormerMachine): Promise<void> {
  await db
    .updateTable('former_credentials')
    .set(({ ref }) => ({ ended_at: ref('ended_at') }))
    .where(({ and }) => and({ node_id, credential_hash }))
    .execute()
}

/** Endpoints that were deleted, are unknown, or of another region have no owner to tell. */
async function listOwners(db: Db, { region }: FormerMachine, ids: readonly string[]) {
  const found: { readonly id: string; readonly account_id: string }[] = []
  for (const some of inChunks(ids)) {
    const owned = db.selectFrom('endpoints').select(['id', 'account_id']).where('id', 'in', some).where('deleted_at', 'is', null)
    found.push(...(await (region === null ? owned : owned.where('region', '=', region)).execute()))
  }
  return found
}

/** Returns what these segments of one log have more than their commits; undefined for nothing. */
async function findMissing(
  db: Db,
  node_id: string,
  endpoint_id: string,
  segments: readonly LeftSegments[],
): Promise<Bounds | undefined> {
  let missing: Bounds | undefined
  for (const run of listRuns(segments)) {
    const commits = await listCommitted(db, { node_id, endpoint_id }, run)
    for (const each of run) {
      const own = subtractCommits(each, commits)
      if (own === undefined) continue
      missing = missing === undefined ? own : addBounds(missing, own)
    }
  }
  return missing
}

/** Groups segments whose seqs follow each other, so that no commit between them is read. */
function listRuns(segments: readonly LeftSegments[]): readonly (readonly LeftSegments[])[] {
  const runs: LeftSegments[][] = []
  let last = Number.NaN
  for (const each of segments.toSorted((a, b) => a.first_seq - b.first_seq)) {
    if (each.first_seq <= last + 1) runs.at(-1)?.push(each)
    else runs.push([each])
    last = each.last_seq
  }
  return runs
}

type Committed = { readonly seq: number; readonly records: number; readonly wal_bytes: number }

/** Returns one commit for each seq: that with the most records. */
async function listCommitted(
  db: Db,
  log: { readonly node_id: string; readonly endpoint_id: string },
  run: readonly LeftSegments[],
): Promise<readonly Committed[]> {
  const rows = await db
    .selectFrom('commits')
    .select(['seq', 'records', 'wal_bytes'])
    .where(({ and }) => and(log))
    .where('seq', '>=', run[0]?.first_seq ?? 0)
    .where('seq', '<=', run.at(-1)?.last_seq ?? -1)
    .orderBy('records')
    .execute()
  return [...new Map(rows.map((row) => [row.seq, row])).values()]
}

function subtractCommits(left: LeftSegments, commits: readonly Committed[]): Bounds | undefined {
  const { first_seq, last_seq, segments, records, bytes } = left
  const own = commits.filter(({ seq }) => seq >= first_seq && seq <= last_seq)
  const missing = Math.max(0, segments - own.length)
  const more = records === null ? null : Math.max(0, records - own.reduce((sum, commit) => sum + commit.records, 0))
  // A commit of each, with all records. One that cannot be counted is taken to be like its commit.
  if (missing === 0 && (more ?? 0) === 0) return undefined
  const undelivered = Math.max(0, bytes - own.reduce((sum, { wal_bytes }) => sum + wal_bytes, 0))
  return { first_seq, last_seq, segments: Math.max(1, missing), records: more, bytes: undelivered }
}

function addBounds(one: Bounds, other: Bounds): Bounds {
  return {
    first_seq: Math.min(one.first_seq, other.first_seq),
    last_seq: Math.max(one.last_seq, other.last_seq),
    segments: one.segments + other.segments,
    records: one.records === null || other.records === null ? null : one.records + other.records,
    bytes: one.bytes + other.bytes,
  }
}

/** Returns whether the loss is new, or larger than before. One that was confirmed is open again then. */
async function upsertLoss(
  db: Tx,
  { machine, known: losses, now }: { readonly machine: FormerMachine; readonly known: readonly LossRow[]; readonly now: number },
  owner: { readonly endpoint_id: string; readonly account_id: string },
  { segments, records, bytes, ...seqs }: Bounds,
): Promise<boolean> {
  const id = machineLossId(machine, owner.endpoint_id)
  const { node_id, region, isRemoved } = machine
  const cause: LossCause = isRemoved ? 'node_removed' : 'left_on_disk'
  const own = await db.selectFrom('losses').selectAll().where('id', '=', id).executeTakeFirst()
  const known = own ?? losses.find((loss) => overlaps(loss, seqs))
  if (known === undefined) {
    const { name = null } = (await findName(db, machine.node_id)) ?? {}
    const figures = { ...seqs, segments, segments_missing: segments, records, bytes, records_recovered: 0, bytes_recovered: 0 }
    const times = { reported_at: now, recorded_at: now, recovered_at: null, confirmed_at: null, confirmed_by: null }
    const row = { id, ...owner, node_id, node_name: name, region: region ?? '', cause, ...figures, ...times }
    await db.insertInto('losses').values(row).execute()
    return true
  }
  const total = {
    segments: segments + known.segments - known.segments_missing,
    records: records === null ? null : records + known.records_recovered,
    bytes: bytes + known.bytes_recovered,
  }
  const isMore = total.segments > known.segments || (total.records ?? 0) > (known.records ?? 0)
  // A removal or a release records what the node reported before. Its disk knows better.
  const isFirst = known.cause !== cause || known.reported_at < known.recorded_at
  if (!isFirst && !isMore) return false
  const first_seq = Math.min(seqs.first_seq, known.first_seq ?? seqs.first_seq)
  const last_seq = Math.max(seqs.last_seq, known.last_seq ?? seqs.last_seq)
  const state = isMore ? { confirmed_at: null, confirmed_by: null } : {}
  const change = {
    cause,
    ...total,
    first_seq,
    last_seq,
    segments_missing: segments,
    reported_at: now,
    recovered_at: null,
    ...state,
  }
  await db.updateTable('losses').set(change).where('id', '=', known.id).execute()
  return isMore
}

async function findName(db: Db, id: string) {
  return db.selectFrom('nodes').select('name').where('id', '=', id).executeTakeFirst()
}
