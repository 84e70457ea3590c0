/**
 * Files of delivered segments, found by their commits: the newest first.
 *
 * Law: a commit and its additions name the files that markers list, so a row of a view is in one of them, once.
 */
import { type PartitionValue, parseArtifactKind, partitionOf } from '#model/artifact.ts'
import type { ArtifactFile, ArtifactFiles } from '#model/commit.ts'
import { fromJson, fromTime, toTime } from '../columns.ts'
import type { Db } from '../store.ts'
import { listAddedArtifacts } from './commit-additions.ts'
import { findMovedFiles, type RowRange } from './moved-files.ts'

/** Commits that are read at once. */
const PAGE_COMMITS = 50

/** Files to list: those of a view version, or raw Parquet. */
export type FilesWanted = { readonly view_id: string } | 'raw'

export type TimeRange = { readonly since?: string | undefined; readonly until?: string | undefined }

export type DeliveredFile = Pick<ArtifactFile, 'key' | 'bytes' | 'rows'> & {
  readonly endpoint_id: string
  readonly destination_id: string
  readonly bucket: string
  readonly region: string
  /** When it was delivered. */
  readonly uploaded_at: string
  /** The values that all of its rows have. */
  readonly partition: readonly PartitionValue[]
  /** Its rows, if the file has those of other segments too. */
  readonly part?: RowRange
}

/** Returns the endpoints of the account, or those of `ids` alone, that may have files of a view version: those that delivered last, first. */
export async function listEndpointsOfView(
  db: Db,
  account_id: string,
  view_id: string,
  ids: readonly string[] | null,
  limit: number,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('endpoints')
    .innerJoin('commit_heads', 'commit_heads.endpoint_id', 'endpoints.id')
    .select('endpoints.id')
    .where('endpoints.account_id', '=', account_id)
    .$if(ids !== null, (query) => query.where('endpoints.id', 'in', ids ?? []))
    .where(({ or, exists, selectFrom }) =>
      or([
        exists(
          selectFrom('bindings')
            .select('bindings.id')
            .whereRef('bindings.endpoint_id', '=', 'endpoints.id')
            .where('bindings.view_id', '=', view_id),
        ),
        // A backfill needs no binding.
        exists(
          selectFrom('jobs')
            .select('jobs.id')
            .whereRef('jobs.endpoint_id', '=', 'endpoints.id')
            .where('jobs.view_id', '=', view_id),
        ),
      ]),
    )
    .orderBy('commit_heads.uploaded_at', 'desc')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/**
 * Yields the files of one endpoint, newest first, of at most so many commits. Returns whether these were all commits in the range. The caller
 * checks the account: commits do not store it.
 */
export async function* deliveredFiles(
  db: Db,
  endpoint_id: string,
  wanted: FilesWanted,
  { since, until }: TimeRange,
  commitsMax: number,
): AsyncGenerator<DeliveredFile, boolean, undefined> {
  let before = until === undefined ? Number.MAX_SAFE_INTEGER : fromTime(until)
  const after = since === undefined ? 0 : fromTime(since)
  for (let read = 0; read < commitsMax; read += PAGE_COMMITS) {
    const commits = await db
      .selectFrom('commits')
      .select(['id', 'destination_id', 'bucket', 'region', 'uploaded_at', 'artifacts'])
      .where('endpoint_id', '=', endpoint_id)
      .where('uploaded_at', '<', before)
      .where('uploaded_at', '>=', after)
      .orderBy('uploaded_at', 'desc')
      .limit(PAGE_COMMITS)
      .execute()
    const ids = commits.map(({ id }) => id)
    const added = await listAddedArtifacts(db, ids)
    const findMoved = await findMovedFiles(db, ids)
    for (const { id, artifacts, uploaded_at, ...place } of commits) {
      const files = { ...fromJson<ArtifactFiles>(artifacts), ...added.get(id) }
      for (const [kind, { key, bytes, rows }] of matching(files, wanted)) {
        const moved = findMoved(id, kind)
        const part = moved && { first_row: moved.first_row, rows: moved.rows }
        const at = moved ?? { key, bytes }
        yield {
          ...place,
          key: at.key,
          bytes: at.bytes,
          rows,
          partition: partitionOf(kind),
          endpoint_id,
          uploaded_at: toTime(uploaded_at),
          ...(part && { part }),
        }
      }
    }
    const last = commits.at(-1)
    if (last === undefined || commits.length < PAGE_COMMITS) return true
    before = last.uploaded_at
  }
  return false
}

function matching(files: ArtifactFiles, wanted: FilesWanted): readonly (readonly [string, ArtifactFile])[] {
  if (wanted === 'raw') return files['parquet'] === undefined ? [] : [['parquet', files['parquet']]]
  return Object.entries(files).filter(
    ([kind, { view_id }]) => view_id === wanted.view_id && parseArtifactKind(kind)?.type === 'view',
  )
}
