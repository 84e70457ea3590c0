import { createHash } from 'node:crypto'
import { z } from 'zod'
import { parseJson } from '#lib/json.ts'
import { additionId, printArtifactKind } from '#model/artifact.ts'
import { type ArtifactFile, SegmentCommit, type ViewOutcome } from '#model/commit.ts'
import type { Unit } from '#model/job-protocol.ts'

/** What a backfill or a re-drive made of a segment that was committed before. */
const UnitMarker = SegmentCommit.omit({ wal_bytes: true, duration_ms: true }).extend({
  commit_id: z.string(),
  kind: z.enum(['backfill', 'redrive']),
  from_version: z.int().nullable(),
})
export type UnitMarker = z.infer<typeof UnitMarker>

/** Like the marker of a segment, for what was made of it later. */
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
  return Buffer.from(`${JSON.stringify(marker, null, 1)}\n`)
}

/** What a marker in the bucket tells of, with the marker itself among its artifacts; undefined where it is none of ours. */
export function decodeUnitMarker(key: string, bytes: Uint8Array): UnitMarker | undefined {
  const { data: marker } = UnitMarker.safeParse(parseJson(Buffer.from(bytes).toString('utf8')))
  const [outcome, ...more] = marker?.views ?? []
  if (marker === undefined || outcome === undefined || more.length > 0) return undefined
  const { view_id, view_name: name, view_version } = outcome
  const kind = printArtifactKind({ type: 'addition-marker', name, version: view_version })
  const manifest: ArtifactFile = {
    ...{ key, bytes: bytes.length, rows: outcome.processed, view_id, view_version },
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }
  return { ...marker, artifacts: { ...marker.artifacts, [kind]: manifest } }
}
