import { parseArtifactKind } from '#model/artifact.ts'
import type { ArtifactFile } from '#model/commit.ts'
import type { StoredCommit } from '#store/commit-additions.ts'

type Source =
  | { readonly kind: 'segment' | 'parquet' | 'dlq'; readonly artifact: ArtifactFile }
  | { readonly status: 'skipped'; readonly reason: string }

/**
 * What a view version is to be made from, over one segment. Law: where the segment has an output of the version, be it of all records or
 * of those that another version refused, it gets no second one: rows of the one could be in the other.
 */
export function chooseSource(
  { artifacts, added }: Pick<StoredCommit, 'artifacts' | 'added'>,
  { view_id, from_view_id }: { readonly view_id: string; readonly from_view_id: string | null },
): Source {
  const all = Object.entries(artifacts)
  if (added.includes(view_id) || all.some(([, artifact]) => artifact.view_id === view_id)) {
    return { status: 'skipped', reason: 'the segment has this version of the view already' }
  }
  if (from_view_id !== null) {
    const refused = all.find(([kind, artifact]) => parseArtifactKind(kind)?.type === 'dlq' && artifact.view_id === from_view_id)
    return refused === undefined
      ? { status: 'skipped', reason: 'the segment has no refused rows of that version' }
      : { kind: 'dlq', artifact: refused[1] }
  }
  const { segment, parquet } = artifacts
  if (segment !== undefined) return { kind: 'segment', artifact: segment }
  if (parquet !== undefined) return { kind: 'parquet', artifact: parquet }
  return {
    status: 'skipped',
    reason: 'the segment was committed neither as a raw segment nor as raw Parquet: its records are not in the bucket',
  }
}
