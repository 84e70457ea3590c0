import type { ArtifactFiles } from '#model/commit.ts'
import { fromJson } from '../columns.ts'
import { sumOf } from '../safe-sums.ts'
import type { Db } from '../store.ts'
import type { SegmentOfNode } from './commits.ts'
import { findMovedFiles, type RowRange } from './moved-files.ts'

export type RawParquet = {
  readonly commit_id: string
  readonly key: string
  readonly bytes: number
  readonly destination_id: string
  readonly bucket: string
  readonly region: string
  /** The rows of the segment, if the file has others too. */
  readonly part?: RowRange
}

/** The newest raw Parquet of an endpoint since a time, and what there is besides. */
export type RecentRawParquet = {
  readonly files: readonly RawParquet[]
  /** Records of all segments that were delivered since then, and segments. */
  readonly records: number
  readonly commits: number
  /** Segments that were searched. */
  readonly searched: number
}

/** Searches at most so many segments, the newest first. */
export async function findRecentRawParquet(db: Db, endpoint_id: string, since: number, limit: number): Promise<RecentRawParquet> {
  const delivered = db.selectFrom('commits').where('endpoint_id', '=', endpoint_id).where('uploaded_at', '>=', since)
  const total = await delivered
    .select(({ fn, ref }) => [fn.countAll<number>().as('commits'), sumOf(ref('records')).as('records')])
    .executeTakeFirstOrThrow()
  const searched = Math.min(Number(total.commits), limit)
  const files = searched === 0 ? [] : await listRawParquet(db, endpoint_id, searched)
  return { files, records: Number(total.records ?? 0), commits: Number(total.commits), searched }
}

/** Returns the raw Parquet files of the endpoint's latest commits, newest first, or those of one segment. */
export async function listRawParquet(
  db: Db,
  endpoint_id: string,
  limit: number,
  segment?: SegmentOfNode,
): Promise<readonly RawParquet[]> {
  let query = db
    .selectFrom('commits')
    .select(['id', 'destination_id', 'bucket', 'region', 'artifacts'])
    .where('endpoint_id', '=', endpoint_id)
  if (segment !== undefined) query = query.where('node_id', '=', segment.node_id).where('seq', '=', segment.seq)
  const rows = await query.orderBy('uploaded_at', 'desc').limit(limit).execute()
  const findMoved = await findMovedFiles(
    db,
    rows.map(({ id }) => id),
  )
  return rows.flatMap(({ id: commit_id, artifacts, ...bucketFields }) => {
    const { parquet } = fromJson<ArtifactFiles>(artifacts)
    if (parquet === undefined) return []
    const moved = findMoved(commit_id, 'parquet')
    if (moved === undefined) return [{ commit_id, ...bucketFields, key: parquet.key, bytes: parquet.bytes }]
    const { key, bytes, first_row, rows: count } = moved
    return [{ commit_id, ...bucketFields, key, bytes, part: { first_row, rows: count } }]
  })
}
