import type { Logger } from '#lib/telemetry.ts'
import { objectKey } from '#model/artifact.ts'
import type { CommitSink } from './commit-sink.ts'
import { ConditionalPuts } from './conditional-puts.ts'
import { describeMarker, encodeMarker, putMarker } from './marker.ts'
import type { MarkerSeal } from './marker-seal.ts'

/** Writes the marker, once every file that it lists was found in the bucket. The marker of an adopted segment is not rewritten. */
export function markerSink(seal: MarkerSeal, logger: Logger): CommitSink {
  const conditionals = new Map<string, ConditionalPuts>()
  const conditionalOf = ({ id, bucket }: { readonly id: string; readonly bucket: string }): ConditionalPuts => {
    const found = conditionals.get(`${id} ${bucket}`) ?? new ConditionalPuts(bucket, logger)
    conditionals.set(`${id} ${bucket}`, found)
    return found
  }
  return {
    name: 'marker',
    async record({ commit, segment, target, bucket, marker, signal }) {
      if (marker === 'adopted') return
      const kind = { type: 'marker' } as const
      const body = encodeMarker(commit, seal)
      const file = describeMarker(objectKey(target.prefix, segment, kind), body, commit.records)
      const { manifest: _, ...artifacts } = commit.artifacts
      const conditional = marker === 'new' ? conditionalOf(target) : undefined
      await putMarker(bucket, { segment, kind, body, file, artifacts, conditional, signal })
    },
  }
}
