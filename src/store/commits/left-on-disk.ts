/**
 * Losses of a machine that lost its place: what is on its disk and nowhere else.
 *
 * Owns: comparing its segments with the commits. Does not own: the rows (loss-rows.ts), and how a loss ends (losses.ts).
 */
import type { LeftSegments } from '#model/left-on-disk.ts'
import type { LossCause } from '#model/loss.ts'
import { inChunks } from '../chunks.ts'
import type { Db, Tx } from '../store.ts'
import { type Held, type LossOwner, lockCommitsOf, openLosses } from './loss-rows.ts'
import { subtractRuns, uniteRuns } from './seq-runs.ts'

/** A machine by the credential that control refuses. */
export type FormerMachine = {
  readonly node_id: string
  readonly region: string | null
  readonly credential_hash: string
  /** Its node was removed, so no other machine has its place, and it may come back. */
  readonly isRemoved: boolean
}

/** Records what no commit has. Returns the number of endpoints with such records. Idempotent. */
export async function recordLeftOnDisk(
  db: Tx,
  machine: FormerMachine,
  left: readonly LeftSegments[],
  now: number,
): Promise<number> {
  await lockCommitsOf(db, machine.node_id)
  const logs = Map.groupBy(left, ({ endpoint_id }) => endpoint_id)
  const losses = await openLosses(db, machine, now)
  const cause: LossCause = machine.isRemoved ? 'node_removed' : 'left_on_disk'
  const node_name = (await findName(db, machine.node_id))?.name ?? null
  for (const owner of await listOwners(db, machine, [...logs.keys()])) {
    const held = await findMissing(db, machine.node_id, owner.endpoint_id, logs.get(owner.endpoint_id) ?? [])
    if (held === undefined) continue
    const exactly = { cause, reported_at: now, isExact: true, segments_unknown: 0 }
    await losses.put({ ...owner, node_name }, { ...held, ...exactly })
  }
  return losses.end()
}

/** Endpoints that were deleted, are unknown, or of another region have no owner to tell. */
async function listOwners(db: Db, { node_id, region }: FormerMachine, ids: readonly string[]) {
  const found: Omit<LossOwner, 'node_name'>[] = []
  for (const some of inChunks(ids)) {
    const owned = db
      .selectFrom('endpoints')
      .select(['id as endpoint_id', 'account_id', 'region'])
      .where('id', 'in', some)
      .where('deleted_at', 'is', null)
    // Where the region is not known, only the logs are believed that the node had.
    const seqs = db.selectFrom('committed_seqs').select('endpoint_id').where('node_id', '=', node_id)
    found.push(...(await (region === null ? owned.where('id', 'in', seqs) : owned.where('region', '=', region)).execute()))
  }
  return found
}

/** Returns what these segments of one log have more than their commits; undefined for nothing. */
async function findMissing(
  db: Db,
  node_id: string,
  endpoint_id: string,
  segments: readonly LeftSegments[],
): Promise<Missing | undefined> {
  const missing: Missing[] = []
  for (const run of listRuns(segments)) {
    const commits = await listCommitted(db, { node_id, endpoint_id }, run)
    missing.push(...run.flatMap((each) => subtractCommits(each, commits) ?? []))
  }
  return missing.length === 0 ? undefined : addUp(missing)
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

/** Describes one segment, or neighbours. */
type Missing = Pick<Held, 'missing' | 'partial' | 'segments' | 'records' | 'bytes'> & {
  readonly first_seq: number
  readonly last_seq: number
}

type Committed = { readonly seq: number; readonly records: number; readonly wal_bytes: number }

/** Returns one commit for each seq: that with the most records. */
async function listCommitted(
  db: Db,
  log: { readonly node_id: string; readonly endpoint_id: string },
  run: readonly LeftSegments[],
): Promise<ReadonlyMap<number, Committed>> {
  const rows = await db
    .selectFrom('commits')
    .select(['seq', 'records', 'wal_bytes'])
    .where(({ and }) => and(log))
    .where('seq', '>=', run[0]?.first_seq ?? 0)
    .where('seq', '<=', run.at(-1)?.last_seq ?? -1)
    .orderBy('records')
    .execute()
  return new Map(rows.map((row) => [row.seq, row]))
}

function subtractCommits(left: LeftSegments, commits: ReadonlyMap<number, Committed>): Missing | undefined {
  const { first_seq, last_seq, segments, records, bytes } = left
  const only = commits.get(first_seq)
  // Nearly always it is one segment of many.
  const some = first_seq === last_seq ? (only === undefined ? [] : [only]) : [...commits.values()]
  const own = some.filter(({ seq }) => seq >= first_seq && seq <= last_seq)
  const count = Math.max(0, segments - own.length)
  const more = records === null ? null : Math.max(0, records - own.reduce((sum, commit) => sum + commit.records, 0))
  // A commit of each, with all records. One that cannot be counted is taken to be like its commit.
  if (count === 0 && (more ?? 0) === 0) return undefined
  const committed = uniteRuns(own.map(({ seq }) => [seq, seq]))
  const missing = subtractRuns([[first_seq, last_seq]], committed)
  const undelivered = Math.max(0, bytes - own.reduce((sum, { wal_bytes }) => sum + wal_bytes, 0))
  const partial = count === 0 ? committed : []
  return { first_seq, last_seq, missing, partial, segments: Math.max(1, count), records: more, bytes: undelivered }
}

function addUp(all: readonly Missing[]): Missing {
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  const records = all.flatMap((each) => each.records ?? [])
  return {
    first_seq: Math.min(...all.map(({ first_seq }) => first_seq)),
    last_seq: Math.max(...all.map(({ last_seq }) => last_seq)),
    missing: uniteRuns(...all.map(({ missing }) => missing)),
    partial: uniteRuns(...all.map(({ partial }) => partial)),
    segments: sum(all.map(({ segments }) => segments)),
    records: records.length < all.length ? null : sum(records),
    bytes: sum(all.map(({ bytes }) => bytes)),
  }
}

async function findName(db: Db, id: string) {
  return db.selectFrom('nodes').select('name').where('id', '=', id).executeTakeFirst()
}
