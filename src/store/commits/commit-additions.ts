/**
 * Artifacts that jobs added to segments after the commit.
 *
 * Law: a segment has one output per view version: the live one, or one addition. Its outcome counts once, in the transaction that records
 * it, and stands for the records of the segment: a failure of the view before it no longer counts, nor do dead letters that it took over.
 */
import type { ArtifactFiles, ViewOutcome } from '#model/commit.ts'
import { fromJson, fromJsonOrNull, toTime } from '../columns.ts'
import { addViewOutcomes, countRedriven, removeFailed } from '../series/view-counters.ts'
import { addOutcomesToSeries } from '../series/view-series.ts'
import type { Db, Tx } from '../store.ts'
import { claimRedrivenFiles, insertDlqFiles } from './dlq-files.ts'
import { findMovedFiles, type MovedFile } from './moved-files.ts'

/** A commit with all its files, for jobs that add to it. */
export type StoredCommit = {
  readonly id: string
  readonly endpoint_id: string
  readonly node_id: string
  readonly log: string
  readonly seq: number
  readonly sealed_at: string
  /** Epoch ms. Its outcomes were counted at that time. */
  readonly uploadedAt: number
  readonly destination: { readonly id: string; readonly bucket: string; readonly region: string }
  /** Includes the artifacts of additions. */
  readonly artifacts: ArtifactFiles
  /** Where the rows of its raw Parquet are, if that was merged and is being removed. */
  readonly movedParquet: MovedFile | undefined
  /** View versions that were applied when it was delivered, even without files, and did not fail. */
  readonly applied: readonly string[]
  /** Number of records by view version that failed on the segment as a whole when it was delivered. */
  readonly failed: Readonly<Record<string, number>>
  /** View versions that have an addition, even one without files. */
  readonly added: readonly string[]
}

export async function findCommit(db: Db, id: string): Promise<StoredCommit | undefined> {
  const row = await db.selectFrom('commits').selectAll().where('id', '=', id).executeTakeFirst()
  if (row === undefined) return undefined
  const additions = await db.selectFrom('commit_additions').select(['view_id', 'artifacts']).where('commit_id', '=', id).execute()
  const { endpoint_id, node_id, log, seq, sealed_at, destination_id, bucket, region } = row
  return {
    ...{ id, endpoint_id, node_id, log, seq },
    sealed_at: toTime(sealed_at),
    uploadedAt: row.uploaded_at,
    destination: { id: destination_id, bucket, region },
    artifacts: Object.assign(
      fromJson<ArtifactFiles>(row.artifacts),
      ...additions.map(({ artifacts }) => fromJson<ArtifactFiles>(artifacts)),
    ),
    movedParquet: (await findMovedFiles(db, [id]))(id, 'parquet'),
    applied: fromJsonOrNull<string[]>(row.applied_views) ?? [],
    failed: fromJsonOrNull<Record<string, number>>(row.failed_views) ?? {},
    added: additions.map(({ view_id }) => view_id),
  }
}

export type Addition = {
  readonly commit: StoredCommit
  readonly view_id: string
  /** The version whose dead letters a re-drive took over. */
  readonly from_view_id: string | null
  readonly job_id: string
  readonly artifacts: ArtifactFiles
  readonly outcome: ViewOutcome
}

/**
 * Records an addition with its DLQ files and counters. Returns false, and changes nothing, if the view version already has one.
 * The caller holds the lock of the endpoint's commits.
 */
export async function insertAddition(db: Tx, addition: Addition, now: number): Promise<boolean> {
  const { commit, view_id, from_view_id, job_id, artifacts, outcome } = addition
  const { id: commit_id, endpoint_id } = commit
  const inserted = await db
    .insertInto('commit_additions')
    .values({ commit_id, view_id, from_view_id, job_id, artifacts: JSON.stringify(artifacts), added_at: now })
    .onConflict((conflict) => conflict.columns(['commit_id', 'view_id']).doNothing())
    .returning('commit_id')
    .executeTakeFirst()
  if (inserted === undefined) return false
  await insertDlqFiles(db, { ...commit, artifacts }, now)
  await addViewOutcomes(db, endpoint_id, [outcome], now)
  await addOutcomesToSeries(db, endpoint_id, [outcome], now)
  const failed = commit.failed[view_id]
  if (failed !== undefined) await removeFailed(db, { endpoint_id, view_id, records: failed, countedAt: commit.uploadedAt })
  for (const { view_id, rows: records, counted_at: countedAt } of await claimRedrivenFiles(db, commit_id, now)) {
    if (countedAt !== null) await countRedriven(db, { endpoint_id, view_id, records, countedAt })
  }
  return true
}

/** Returns the added artifacts by commit id. */
export async function listAddedArtifacts(db: Db, commitIds: readonly string[]): Promise<ReadonlyMap<string, ArtifactFiles>> {
  if (commitIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('commit_additions')
    .select(['commit_id', 'artifacts', 'added_at'])
    .where('commit_id', 'in', commitIds)
    .execute()
  const added = new Map<string, ArtifactFiles>()
  for (const { commit_id, artifacts } of rows.toSorted((a, b) => a.added_at - b.added_at)) {
    added.set(commit_id, { ...added.get(commit_id), ...fromJson<ArtifactFiles>(artifacts) })
  }
  return added
}
