import { parseArtifactKind } from '#model/artifact.ts'
import type { ArtifactFile } from '#model/commit.ts'
import type { StoredCommit } from '#store/commits/commit-additions.ts'

type Source =
  | { readonly kind: 'segment' | 'parquet' | 'dlq'; readonly artifact: ArtifactFile; readonly first_row?: number }
  | { readonly status: 'skipped'; readonly reason: string }

/**
 * Returns the file of a segment that a unit reads.
 * Law: a segment never gets a second output of a view version, because both could contain the same rows.
 */
export function chooseSource(
  { artifacts, movedParquet, applied, added }: Pick<StoredCommit, 'artifacts' | 'movedParquet' | 'applied' | 'added'>,
  { view_id, from_view_id }: { readonly view_id: string; readonly from_view_id: string | null },
): Source {
  const all = Object.entries(artifacts)
  const hasFiles = all.some(([, artifact]) => artifact.view_id === view_id)
  if (hasFiles || applied.includes(view_id) || added.includes(view_id)) {
    return { status: 'skipped', reason: 'the segment already has an output of this view version' }
  }
  if (from_view_id !== null) {
    const dlq = all.find(([kind, artifact]) => parseArtifactKind(kind)?.type === 'dlq' && artifact.view_id === from_view_id)
    return dlq === undefined
      ? { status: 'skipped', reason: 'the segment has no DLQ rows of that version' }
      : { kind: 'dlq', artifact: dlq[1] }
  }
  const { segment, parquet } = artifacts
  if (segment !== undefined) return { kind: 'segment', artifact: segment }
  if (parquet !== undefined && movedParquet !== undefined) {
    const { first_row, ...file } = movedParquet
    return { kind: 'parquet', artifact: file, first_row }
  }
  if (parquet !== undefined) return { kind: 'parquet', artifact: parquet }
  return {
    status: 'skipped',
    reason: 'the records are not in the bucket: the segment was committed without a raw segment and without raw Parquet',
  }
}
