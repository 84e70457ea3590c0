/**
 * Artifacts that jobs added to segments after the commit.
 *
 * Law: a segment has one output per view version: the live one, or one addition.
 */
import type { ArtifactFiles } from '#model/commit.ts'
import { fromJson, fromJsonOrNull, toTime } from './columns.ts'
import { insertDlqFiles } from './dlq-files.ts'
import { findMovedFiles, type MovedFile } from './moved-files.ts'
import type { Db, Tx } from './store.ts'

/** A commit with all its files, for jobs that add to it. */
export type StoredCommit = {
  readonly id: string
  readonly endpoint_id: string
  readonly node_id: string
  readonly log: string
  readonly seq: number
  readonly sealed_at: string
  readonly destination: { readonly id: string; readonly bucket: string; readonly region: string }
  /** Includes the artifacts of additions. */
  readonly artifacts: ArtifactFiles
  /** Where the rows of its raw Parquet are, if that was merged and is being removed. */
  readonly movedParquet: MovedFile | undefined
  /** View versions that were applied when it was delivered, even without files, and did not fail. */
  readonly applied: readonly string[]
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
    destination: { id: destination_id, bucket, region },
    artifacts: Object.assign(
      fromJson<ArtifactFiles>(row.artifacts),
      ...additions.map(({ artifacts }) => fromJson<ArtifactFiles>(artifacts)),
    ),
    movedParquet: (await findMovedFiles(db, [id]))(id, 'parquet'),
    applied: fromJsonOrNull<string[]>(row.applied_views) ?? [],
    added: additions.map(({ view_id }) => view_id),
  }
}

/** Records an addition and its DLQ files. Returns false, and changes nothing, if the view version already has one. */
export async function insertAddition(
  db: Tx,
  { commit, view_id, job_id, artifacts }: { commit: StoredCommit; view_id: string; job_id: string; artifacts: ArtifactFiles },
  now: number,
): Promise<boolean> {
  const inserted = await db
    .insertInto('commit_additions')
    .values({ commit_id: commit.id, view_id, job_id, artifacts: JSON.stringify(artifacts), added_at: now })
    .onConflict((conflict) => conflict.columns(['commit_id', 'view_id']).doNothing())
    .returning('commit_id')
    .executeTakeFirst()
  if (inserted === undefined) return false
  await insertDlqFiles(db, { ...commit, artifacts }, now)
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
