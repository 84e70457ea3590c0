import { isMarker, objectKey, parseArtifactKind, type SegmentName } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { DestinationTarget } from '#model/destination.ts'

/**
 * Returns why a marker lists something that no node would have written for this segment into this bucket; undefined if all of it is valid.
 * The bucket belongs to the customer: it may contain anything under any name.
 */
export function findForeignArtifact(
  { destination, artifacts, adoption }: Pick<SegmentCommit, 'destination' | 'artifacts' | 'adoption'>,
  name: SegmentName,
  { bucket, prefix }: Pick<DestinationTarget, 'bucket' | 'prefix'>,
): string | undefined {
  if (destination.bucket !== bucket) return `it belongs to another bucket, ${destination.bucket}`
  const segment = { ...name, adoption }
  const viewsWithDlq = new Set<string | undefined>()
  for (const [name, { key, view_id }] of Object.entries(artifacts)) {
    const kind = parseArtifactKind(name)
    // The marker's own entry is added when it is read.
    if (kind !== undefined && isMarker(kind)) continue
    if (kind === undefined || key !== objectKey(prefix, segment, kind)) return `it lists a file that no node writes: ${key}`
    if (kind.type !== 'dlq') continue
    if (viewsWithDlq.has(view_id)) return 'it lists a view twice'
    viewsWithDlq.add(view_id)
  }
  return undefined
}
