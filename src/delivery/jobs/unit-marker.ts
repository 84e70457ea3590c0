import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { additionId, printArtifactKind } from '#model/artifact.ts'
import { type ArtifactFile, SegmentCommit, type ViewOutcome } from '#model/commit.ts'
import type { Unit } from '#model/job-protocol.ts'
import { decodeContent, describeMarker, encodeContent, type PutMarkerOptions } from '../publish/marker.ts'

/** The marker of the files that a backfill or a re-drive added to a committed segment. */
const UnitMarker = SegmentCommit.omit({ records_damaged: true, wal_bytes: true, duration_ms: true }).extend({
  commit_id: z.string(),
  kind: z.enum(['backfill', 'redrive']),
  from_version: z.int().nullable(),
})
export type UnitMarker = z.infer<typeof UnitMarker>

type Outcome = Pick<ViewOutcome, 'view_id' | 'view_version' | 'processed'>

export function encodeUnitMarker(
  { commit, view, source, target }: Unit,
  artifacts: Readonly<Record<string, ArtifactFile>>,
  outcome: ViewOutcome,
  uploaded_at: string,
): Uint8Array {
  const { id, endpoint_id, node_id, log, seq, sealed_at } = commit
  const marker: UnitMarker = {
    id: additionId(id, view),
    commit_id: id,
    kind: source.kind === 'dlq' ? 'redrive' : 'backfill',
    from_version: source.kind === 'dlq' ? source.from_version : null,
    ...{ endpoint_id, node_id, log, seq },
    records: outcome.processed,
    ...{ sealed_at, uploaded_at },
    destination: { id: target.id, bucket: target.bucket, region: target.region },
    artifacts,
    views: [outcome],
  }
  return encodeContent(marker)
}

/** Returns the marker as it is reported to control. */
export function describeUnitMarker(key: string, body: Uint8Array, outcome: Outcome): ArtifactFile {
  const { view_id, view_version, processed } = outcome
  return { ...describeMarker(key, body, processed), view_id, view_version }
}

/** Returns the marker in the bucket as it is reported, if it is one of this unit and lists the same files. Otherwise undefined. */
export function findListedMarker(
  { kind, file, artifacts }: Pick<PutMarkerOptions, 'kind' | 'file' | 'artifacts'>,
  body: Uint8Array,
): ArtifactFile | undefined {
  const { [printArtifactKind(kind)]: found, ...listed } = decodeUnitMarker(file.key, body)?.artifacts ?? {}
  const isSame = found?.view_id === file.view_id && isDeepStrictEqual(listed, artifacts)
  return isSame ? found : undefined
}

/** Returns the content of a marker in the bucket with the marker itself among its artifacts, or undefined if the object is not a marker. */
export function decodeUnitMarker(key: string, body: Uint8Array): UnitMarker | undefined {
  const marker = decodeContent(UnitMarker, body)
  const [outcome, ...more] = marker?.views ?? []
  if (marker === undefined || outcome === undefined || more.length > 0) return undefined
  const { view_name: name, view_version: version } = outcome
  const kind = printArtifactKind({ type: 'addition-marker', name, version })
  return { ...marker, artifacts: { ...marker.artifacts, [kind]: describeUnitMarker(key, body, outcome) } }
}
