/**
 * Delivered segments.
 *
 * Owns: recording a segment once, with its DLQ files, counters and units of jobs, even if it is reported several times.
 * Law: `uploaded_at` increases strictly within an endpoint, in the order in which commits become visible. Pages by `before`
 * therefore neither repeat nor skip a commit. A restored commit gets its old time, which is in the past.
 */
import { sql } from 'kysely'
import {
  type ArtifactFiles,
  type Commit,
  type CommitsQuery,
  listKeys,
  type SegmentCommit,
  type ViewOutcome,
} from '#model/commit.ts'
import type { CommitsFound } from '#model/node-protocol.ts'
import { fromJson, fromTime, toTime } from '../columns.ts'
import type { Database } from '../schema.ts'
import { addCommitToSeries } from '../series/endpoint-series.ts'
import { addViewOutcomes } from '../series/view-counters.ts'
import { addOutcomesToSeries } from '../series/view-series.ts'
import type { Db, Tx } from '../store.ts'
import { listAddedArtifacts } from './commit-additions.ts'
import { insertDlqFiles } from './dlq-files.ts'
import { addToJobs } from './late-segments.ts'
import { recoverLoss } from './losses.ts'
import { findMovedFiles, type MovedFiles } from './moved-files.ts'

/**
 * Records a commit with its DLQ files and counters. A known commit changes nothing.
 * `now` (epoch ms) becomes its `uploaded_at`, or the first millisecond after the endpoint's last one.
 */
export async function recordCommit(db: Tx, commit: SegmentCommit, now: number): Promise<'new' | 'known'> {
  // Checked before taking the lock, so that a repeated report neither writes nor waits.
  if (await isKnown(db, commit.id)) return 'known'
  return insertCommit(db, commit, await claimUploadedAt(db, commit.endpoint_id, now))
}

/**
 * Records a commit that this database lost, like `recordCommit`, at its original time (epoch ms) or the first free millisecond
 * after it.
 */
export async function restoreCommit(db: Tx, commit: SegmentCommit, committedAt: number): Promise<'new' | 'known'> {
  if (await isKnown(db, commit.id)) return 'known'
  return insertCommit(db, commit, await findFreeUploadedAt(db, commit.endpoint_id, committedAt))
}

async function insertCommit(db: Tx, commit: SegmentCommit, uploadedAt: number): Promise<'new' | 'known'> {
  const { id, endpoint_id, node_id, log, seq, records, records_damaged, wal_bytes, duration_ms, destination } = commit
  const sealedAt = fromTime(commit.sealed_at)
  // A shadow has no output: a backfill may still write it.
  const written = commit.views.filter(({ is_shadow }) => is_shadow !== true)
  const applied = written.filter(({ errors }) => !('view_failed' in errors)).map(({ view_id }) => view_id)
  const failed = written.flatMap(({ view_id, failed }) => (failed > 0 ? [[view_id, failed] as const] : []))
  const inserted = await db
    .insertInto('commits')
    .values({
      ...{ id, endpoint_id, node_id, log, seq, records, records_damaged, wal_bytes, duration_ms },
      sealed_at: sealedAt,
      uploaded_at: uploadedAt,
      destination_id: destination.id,
      bucket: destination.bucket,
      region: destination.region,
      artifacts: JSON.stringify(commit.artifacts),
      applied_views: JSON.stringify(applied),
      failed_views: failed.length === 0 ? null : JSON.stringify(Object.fromEntries(failed)),
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst()
  if (inserted === undefined) return 'known'
  await raiseCommittedSeq(db, commit)
  await countCommit(db, node_id)
  await recoverLoss(db, commit, uploadedAt)
  await insertDlqFiles(db, commit, uploadedAt)
  const counted = await withoutEndedShadows(db, commit, sealedAt)
  await addViewOutcomes(db, endpoint_id, counted, uploadedAt)
  await addCommitToSeries(db, commit, uploadedAt)
  await addOutcomesToSeries(db, endpoint_id, counted, uploadedAt)
  await addToJobs(db, { id, endpoint_id, sealedAt, applied })
  return 'new'
}

/** Leaves out the outcomes of shadows that ended before another one of their version started: their definition may be another one. */
async function withoutEndedShadows(
  db: Tx,
  { endpoint_id, views }: SegmentCommit,
  sealedAt: number,
): Promise<readonly ViewOutcome[]> {
  if (!views.some(({ is_shadow }) => is_shadow === true)) return views
  const later = await db
    .selectFrom('shadows')
    .select('view_id')
    .where('endpoint_id', '=', endpoint_id)
    .where('started_at', '>', sealedAt)
    .execute()
  const ended = new Set(later.map(({ view_id }) => view_id))
  return views.filter(({ view_id, is_shadow }) => is_shadow !== true || !ended.has(view_id))
}

/** Segment that holds a record, as its receipt names it. */
export type SegmentOfNode = { readonly node_id: string; readonly seq: number }

export type CommitPage = {
  readonly items: readonly Commit[]
  /** The `before` of the next page; null on the last page. */
  readonly next_cursor: string | null
}

/** Returns the commits of one endpoint, newest first. The caller checks the account: commits do not store it. */
export async function listCommits(
  db: Db,
  endpoint_id: string,
  { limit, before }: Pick<CommitsQuery, 'limit' | 'before'>,
): Promise<CommitPage> {
  let query = db.selectFrom('commits').select(columns).where('endpoint_id', '=', endpoint_id)
  if (before !== undefined) query = query.where('uploaded_at', '<', fromTime(before))
  const rows = await query
    .orderBy('uploaded_at', 'desc')
    .limit(limit + 1)
    .execute()
  const items = await toCommits(db, rows.slice(0, limit))
  return { items, next_cursor: rows.length > limit ? (items.at(-1)?.uploaded_at ?? null) : null }
}

/** Returns the commit of a segment. There are several only if a node lost its disk and control its commits, and it counted anew. */
export async function listSegmentCommits(db: Db, endpoint_id: string, { node_id, seq }: SegmentOfNode): Promise<Commit[]> {
  const rows = await db
    .selectFrom('commits')
    .select(columns)
    .where(({ and }) => and({ endpoint_id, node_id, seq }))
    .execute()
  return toCommits(
    db,
    rows.toSorted((a, b) => b.uploaded_at - a.uploaded_at),
  )
}

/** Returns the commits of the segments, whose accounts the caller has checked. Each has the id of its endpoint, which other commits leave out. */
export async function listCommitsOf(
  db: Db,
  segments: readonly (SegmentOfNode & { readonly endpoint_id: string })[],
): Promise<readonly (Commit & { readonly endpoint_id: string })[]> {
  const rows = await db
    .selectFrom('commits')
    .select([...columns, 'endpoint_id'])
    .where(({ and, or }) => or(segments.map(({ endpoint_id, node_id, seq }) => and({ endpoint_id, node_id, seq }))))
    .execute()
  const commits = await toCommits(
    db,
    rows.map(({ endpoint_id: _, ...row }) => row),
  )
  return commits.map((commit, index) => ({ ...commit, endpoint_id: rows[index]?.endpoint_id ?? '' }))
}

/** A commit, and what opens its bucket. */
export type LocatedCommit = { readonly commit: Commit; readonly destination_id: string; readonly region: string }

/** Returns undefined for a commit of another endpoint. */
export async function findEndpointCommit(db: Db, endpoint_id: string, id: string): Promise<LocatedCommit | undefined> {
  const row = await db
    .selectFrom('commits')
    .select([...columns, 'destination_id', 'region'])
    .where(({ and }) => and({ endpoint_id, id }))
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { destination_id, region, ...stored } = row
  const added = await listAddedArtifacts(db, [id])
  return { commit: toCommit(stored, added.get(id), await findMovedFiles(db, [id])), destination_id, region }
}

/** Returns the highest committed seq of each endpoint from one node. */
export async function listCommittedSeqs(db: Db, node_id: string): Promise<Record<string, number>> {
  const rows = await db.selectFrom('committed_seqs').select(['endpoint_id', 'seq']).where('node_id', '=', node_id).execute()
  return Object.fromEntries(rows.map(({ endpoint_id, seq }) => [endpoint_id, seq]))
}

/** Segments that a node may have begun after its last report. */
export const seqsSkipped = 1_000
/**
 * Segments of a log that a machine which was cut off can have begun beyond what control knows: one each 100 ms for three years. If it names a
 * higher seq, that does not count, so that it cannot use up the twelve digits of a seq.
 */
const seqsBelieved = 1_000_000_000

/**
 * Has a node continue each log above what it reported, as if that was committed: the machine before may have gone on, or its disk be an older
 * copy. Logs of which nothing is known are those of all endpoints of its region.
 */
export async function skipSeqs(db: Tx, node_id: string): Promise<void> {
  const known = sql<number>`(select max(seq) from (select -1 as seq union all select committed.seq union all select held.last_seq) as known)`
  const believed = sql<number>`${known} + cast(${seqsBelieved} as bigint)`
  // A removed node reports nothing any more. What it held is in its losses.
  const region = sql<string>`coalesce((select region from nodes where id = ${node_id}),
    (select max(region) from former_credentials where node_id = ${node_id} and fence = 'node_removed'))`
  await db
    .insertInto('committed_seqs')
    .columns(['node_id', 'endpoint_id', 'seq'])
    .expression(({ selectFrom }) =>
      selectFrom('endpoints')
        .leftJoin('committed_seqs as committed', (join) =>
          join.onRef('committed.endpoint_id', '=', 'endpoints.id').on('committed.node_id', '=', node_id),
        )
        .leftJoin('endpoint_lags as held', (join) =>
          join.onRef('held.endpoint_id', '=', 'endpoints.id').on('held.node_id', '=', node_id),
        )
        .leftJoin(
          db
            .selectFrom('losses')
            .select(({ fn }) => ['endpoint_id', fn.max('last_seq').as('last_seq')])
            .where('node_id', '=', node_id)
            .groupBy('endpoint_id')
            .as('lost'),
          (join) => join.onRef('lost.endpoint_id', '=', 'endpoints.id'),
        )
        .select(sql<string>`cast(${node_id} as text)`.as('node_id'))
        .select('endpoints.id as endpoint_id')
        .select(
          sql<number>`(select max(seq) from (select ${known} as seq union all select case when lost.last_seq > ${believed}
            then ${believed} else lost.last_seq end) as used) + cast(${seqsSkipped} as bigint)`.as('seq'),
        )
        .where(({ eb, and, or }) =>
          or([
            eb('committed.seq', 'is not', null),
            eb('held.last_seq', 'is not', null),
            eb('lost.last_seq', 'is not', null),
            and([eb('endpoints.region', '=', region), eb('endpoints.deleted_at', 'is', null)]),
          ]),
        ),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['node_id', 'endpoint_id'])
        .doUpdateSet(({ ref }) => ({ seq: ref('excluded.seq') }))
        .whereRef('committed_seqs.seq', '<', 'excluded.seq'),
    )
    .execute()
}

/** Returns the commits of a log right before and after a seq that has none. */
export async function findNeighbours(
  db: Db,
  endpoint_id: string,
  { node_id, seq }: SegmentOfNode,
): Promise<{ readonly before: number | undefined; readonly after: number | undefined }> {
  const commits = db
    .selectFrom('commits')
    .select('uploaded_at')
    .where(({ and }) => and({ endpoint_id, node_id }))
    .limit(1)
  const before = await commits.where('seq', '<', seq).orderBy('seq', 'desc').executeTakeFirst()
  const after = await commits.where('seq', '>', seq).orderBy('seq').executeTakeFirst()
  return { before: before?.uploaded_at, after: after?.uploaded_at }
}

/** Returns the number of commits of a node that were ever recorded here. It is lower than before only if the database went back. */
export async function countRecordedCommits(db: Db, node_id: string): Promise<number> {
  const row = await db.selectFrom('node_commits').select('commits').where('node_id', '=', node_id).executeTakeFirst()
  return row?.commits ?? 0
}

/** Returns those of the commits of a node that are recorded. */
export async function findCommits(db: Db, node_id: string, ids: readonly string[]): Promise<CommitsFound['commits']> {
  const rows = await db
    .selectFrom('commits')
    .select(['id', 'records', 'artifacts'])
    .where('id', 'in', ids)
    .where('node_id', '=', node_id)
    .execute()
  return rows.map(({ artifacts, ...row }) => ({ ...row, keys: listKeys(fromJson<ArtifactFiles>(artifacts)) }))
}

async function isKnown(db: Tx, id: string): Promise<boolean> {
  return (await db.selectFrom('commits').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}

/** Locks the endpoint's row until the transaction ends, so that commits of one endpoint get their times in sequence. */
async function claimUploadedAt(db: Tx, endpoint_id: string, now: number): Promise<number> {
  const { uploaded_at } = await db
    .insertInto('commit_heads')
    .values({ endpoint_id, uploaded_at: now })
    .onConflict((conflict) =>
      conflict.column('endpoint_id').doUpdateSet({
        uploaded_at: sql<number>`case when excluded.uploaded_at > commit_heads.uploaded_at then excluded.uploaded_at else commit_heads.uploaded_at + 1 end`,
      }),
    )
    .returning('uploaded_at')
    .executeTakeFirstOrThrow()
  return uploaded_at
}

/** Returns the first free millisecond at or after `committedAt` within the endpoint. Locks like `claimUploadedAt`. */
async function findFreeUploadedAt(db: Tx, endpoint_id: string, committedAt: number): Promise<number> {
  await raiseHead(db, endpoint_id, committedAt)
  const endpointCommits = db.selectFrom('commits').where('endpoint_id', '=', endpoint_id)
  const isTaken = await endpointCommits.select('id').where('uploaded_at', '=', committedAt).executeTakeFirst()
  if (isTaken === undefined) return committedAt
  const { uploaded_at } = await endpointCommits
    .select('uploaded_at')
    .where('uploaded_at', '>=', committedAt)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('commits as next')
            .select('next.id')
            .whereRef('next.endpoint_id', '=', 'commits.endpoint_id')
            .where('next.uploaded_at', '=', sql<number>`commits.uploaded_at + 1`),
        ),
      ),
    )
    .orderBy('uploaded_at')
    .limit(1)
    .executeTakeFirstOrThrow()
  await raiseHead(db, endpoint_id, uploaded_at + 1)
  return uploaded_at + 1
}

/** Waits for commits of the endpoint that are being recorded, and makes later ones wait, until the transaction ends. */
export async function lockCommits(db: Tx, endpoint_id: string): Promise<void> {
  await raiseHead(db, endpoint_id, 0)
}

async function raiseHead(db: Tx, endpoint_id: string, uploaded_at: number): Promise<void> {
  await db
    .insertInto('commit_heads')
    .values({ endpoint_id, uploaded_at })
    .onConflict((conflict) =>
      conflict.column('endpoint_id').doUpdateSet({
        uploaded_at: sql<number>`case when excluded.uploaded_at > commit_heads.uploaded_at then excluded.uploaded_at else commit_heads.uploaded_at end`,
      }),
    )
    .execute()
}

async function raiseCommittedSeq(db: Tx, { node_id, endpoint_id, seq }: SegmentCommit): Promise<void> {
  await db
    .insertInto('committed_seqs')
    .values({ node_id, endpoint_id, seq })
    .onConflict((conflict) =>
      conflict.columns(['node_id', 'endpoint_id']).doUpdateSet({ seq }).where('committed_seqs.seq', '<', seq),
    )
    .execute()
}

async function countCommit(db: Tx, node_id: string): Promise<void> {
  await db
    .insertInto('node_commits')
    .values({ node_id, commits: 1 })
    .onConflict((conflict) => conflict.column('node_id').doUpdateSet({ commits: sql<number>`node_commits.commits + 1` }))
    .execute()
}

const columns = [
  ...(['id', 'node_id', 'seq', 'records', 'records_damaged', 'wal_bytes', 'duration_ms'] as const),
  ...(['sealed_at', 'uploaded_at', 'bucket', 'artifacts'] as const),
] as const

type Row = Pick<Database['commits'], (typeof columns)[number]>

async function toCommits(db: Db, rows: readonly Row[]): Promise<Commit[]> {
  const ids = rows.map(({ id }) => id)
  const added = await listAddedArtifacts(db, ids)
  const findMoved = await findMovedFiles(db, ids)
  return rows.map((row) => toCommit(row, added.get(row.id), findMoved))
}

function toCommit(
  { artifacts, sealed_at, uploaded_at, ...row }: Row,
  added: ArtifactFiles | undefined,
  findMoved: MovedFiles,
): Commit {
  const files = Object.entries({ ...fromJson<ArtifactFiles>(artifacts), ...added }).map(([kind, { key, bytes, sha256 }]) => {
    const moved_to = findMoved(row.id, kind)
    return [kind, { key, bytes, sha256, ...(moved_to && { moved_to }) }] as const
  })
  return { ...row, sealed_at: toTime(sealed_at), uploaded_at: toTime(uploaded_at), artifacts: Object.fromEntries(files) }
}
