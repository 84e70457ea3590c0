import { objectKey } from '#model/artifact.ts'
import type { CommitSink } from './commit-sink.ts'
import { describeMarker, encodeMarker, putMarker } from './marker.ts'
import type { MarkerSeal } from './marker-seal.ts'

/** Writes the marker, once every file that it lists was found in the bucket. The marker of an adopted segment is not rewritten. */
export function markerSink(seal: MarkerSeal): CommitSink {
  return {
    name: 'marker',
    async record({ commit, segment, target, bucket, isAdopted, signal }) {
      if (isAdopted) return
      const kind = { type: 'marker' } as const
      const body = encodeMarker(commit, seal)
      const file = describeMarker(objectKey(target.prefix, segment, kind), body, commit.records)
      const { manifest: _, ...artifacts } = commit.artifacts
      await putMarker(bucket, { segment, kind, body, file, artifacts, signal })
    },
  }
}
