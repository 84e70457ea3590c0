import type { Logger } from '#lib/telemetry.ts'
import { isMarker, objectKey, parseArtifactKind, type SegmentName } from '#model/artifact.ts'
import type { CommitSink, FinishedSegment } from './commit-sink.ts'
import { conditionalPutsByDestination } from './conditional-puts.ts'
import { describeMarker, encodeMarker, putMarker } from './marker.ts'
import type { MarkerSeal } from './marker-seal.ts'
import { removeFiles } from './remove-files.ts'

export type MarkerSinkOptions = {
  readonly seal: MarkerSeal
  /** Ids of adoptions before that of the segments; see Adoption. */
  readonly earlierAdoptions?: readonly string[] | undefined
  readonly logger: Logger
}

/**
 * Writes the marker, once every file that it lists was found in the bucket. The marker of an adopted segment is not rewritten.
 *
 * Law: files that an earlier owner of the log left without a marker go once the marker is there, and not before: until then it could be that
 * owner's. Where the store may replace the marker, they stay.
 */
export function markerSink({ seal, earlierAdoptions = [], logger }: MarkerSinkOptions): CommitSink {
  const conditionalOf = conditionalPutsByDestination(logger)
  return {
    name: 'marker',
    async record(finished) {
      const { commit, segment, target, bucket, marker, signal } = finished
      const remove = (owners: readonly (string | undefined)[]) =>
        removeFiles(
          bucket,
          owners.flatMap((adoption) => keysOf(finished, { ...segment, adoption })),
          { signal, logger },
        )
      if (marker === 'adopted') {
        // An attempt that was killed may have left files of this owner.
        if (commit.adoption !== segment.adoption) await remove([segment.adoption])
        return
      }
      const kind = { type: 'marker' } as const
      const body = encodeMarker(commit, seal)
      const file = describeMarker(objectKey(target.prefix, segment, kind), body, commit.records)
      const { manifest: _, ...artifacts } = commit.artifacts
      const conditional = conditionalOf(target)
      const put = { segment, kind, body, file, artifacts, signal }
      await putMarker(bucket, marker === 'new' ? { ...put, conditional } : put)
      if (segment.adoption !== undefined && conditional.isEnforced) await remove([undefined, ...earlierAdoptions])
    },
  }
}

/** The keys that the files of the commit have if that owner of the log delivers them. */
function keysOf({ commit, target }: FinishedSegment, owner: SegmentName): readonly string[] {
  return Object.keys(commit.artifacts).flatMap((name) => {
    const kind = parseArtifactKind(name)
    return kind === undefined || isMarker(kind) ? [] : [objectKey(target.prefix, owner, kind)]
  })
}
