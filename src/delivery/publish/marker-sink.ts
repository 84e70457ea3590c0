import type { Logger } from '#lib/telemetry.ts'
import { objectKey, parseArtifactKind, type SegmentName } from '#model/artifact.ts'
import type { ArtifactFiles } from '#model/commit.ts'
import type { CommitSink, FinishedSegment } from './commit-sink.ts'
import { ConditionalPuts } from './conditional-puts.ts'
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
  const conditionals = new Map<string, ConditionalPuts>()
  const conditionalOf = ({ id, bucket }: { readonly id: string; readonly bucket: string }): ConditionalPuts => {
    const found = conditionals.get(`${id} ${bucket}`) ?? new ConditionalPuts(bucket, logger)
    conditionals.set(`${id} ${bucket}`, found)
    return found
  }
  return {
    name: 'marker',
    async record(finished) {
      const { commit, segment, target, bucket, marker, signal } = finished
      if (marker === 'adopted') return
      const kind = { type: 'marker' } as const
      const body = encodeMarker(commit, seal)
      const file = describeMarker(objectKey(target.prefix, segment, kind), body, commit.records)
      const { manifest: _, ...artifacts } = commit.artifacts
      const conditional = conditionalOf(target)
      const put = { segment, kind, body, file, artifacts, signal }
      await putMarker(bucket, marker === 'new' ? { ...put, conditional } : put)
      if (segment.adoption === undefined || !conditional.isHeeded) return
      const owners = [undefined, ...earlierAdoptions].map((adoption) => ({ ...segment, adoption }))
      for (const owner of owners) await removeFiles(bucket, keysOf(finished, owner, artifacts), { signal, logger })
    },
  }
}

/** The keys that the files have if that owner of the log delivers them. */
function keysOf({ target }: FinishedSegment, owner: SegmentName, artifacts: ArtifactFiles): readonly string[] {
  return Object.keys(artifacts).flatMap((name) => {
    const kind = parseArtifactKind(name)
    return kind === undefined ? [] : [objectKey(target.prefix, owner, kind)]
  })
}
