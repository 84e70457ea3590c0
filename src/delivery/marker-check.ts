import { isMarker, objectKey, parseArtifactKind, type SegmentName } from '#model/artifact.ts'
import type { ArtifactFiles, SegmentCommit } from '#model/commit.ts'
import type { DestinationTarget } from '#model/destination.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { unlessReadDenied } from './bucket.ts'

/** A marker is a few kilobytes, with many views and long messages some hundred. What is larger is none. */
export const markerBytesMax = 4 * 1024 * 1024

/**
 * What a marker lists that no node of ours would have written for this segment into this bucket; undefined where there is nothing.
 * The bucket is the customer's: anything may lie there under any name.
 */
export function whatIsForeign(
  { destination, artifacts }: Pick<SegmentCommit, 'destination' | 'artifacts'>,
  segment: SegmentName,
  { bucket, prefix }: Pick<DestinationTarget, 'bucket' | 'prefix'>,
): string | undefined {
  if (destination.bucket !== bucket) return `it is of another bucket, ${destination.bucket}`
  const viewsWithDlq = new Set<string | undefined>()
  for (const [name, { key, view_id }] of Object.entries(artifacts)) {
    const kind = parseArtifactKind(name)
    if (kind === undefined) return `it lists what no node writes: ${key}`
    // The marker's own entry is added when it is read.
    if (isMarker(kind)) continue
    if (key !== objectKey(prefix, segment, kind)) return `it lists what no node writes: ${key}`
    if (kind.type !== 'dlq') continue
    if (viewsWithDlq.has(view_id)) return 'it lists a view twice'
    viewsWithDlq.add(view_id)
  }
  return undefined
}

/** Whether all that a marker is to list is in the bucket now. Where that may not be looked at, what the store said of each put counts. */
export async function areThere(store: ObjectStore, artifacts: ArtifactFiles, signal: AbortSignal): Promise<boolean> {
  const sizes = await Promise.all(
    Object.values(artifacts).map(async ({ key, bytes }) => {
      const found = await unlessReadDenied(() => store.size(key, signal), bytes)
      return found === bytes
    }),
  )
  return sizes.every((isWhole) => isWhole)
}
