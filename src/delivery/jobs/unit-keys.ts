import type { Unit } from '#model/job-protocol.ts'
import { objectKey, type SegmentName } from '../object-key.ts'

/** The segment of a unit, under the prefix that its files have. */
export function segmentOf({ commit, target }: Unit): SegmentName {
  const { endpoint_id: endpointId, node_id: nodeId, log, seq, sealed_at } = commit
  return { prefix: target.prefix, endpointId, nodeId, log, seq, sealedAtMicros: Date.parse(sealed_at) * 1000 }
}

/**
 * The kind and the key of a file that a unit makes, by the kind that it would have if it were delivered live. What a backfill makes is
 * what live delivery would have made, and is called so. What a re-drive makes is but a part of that, and says from which version's rows.
 */
export function artifactName(unit: Unit, liveKind: string): { readonly kind: string; readonly key: string } {
  const key = objectKey(segmentOf(unit), liveKind)
  if (unit.source.kind !== 'dlq') return { kind: liveKind, key }
  const part = `redrive-v${unit.source.from_version}`
  return { kind: `${liveKind}/${part}`, key: key.replace(/\.(parquet|ndjson\.gz)$/, `.${part}.$1`) }
}

/** The marker of a unit: one for a segment and a view version, wherever its rows are from. */
export function markerName(unit: Unit): { readonly kind: string; readonly key: string } {
  const { name, version } = unit.view
  const key = objectKey(segmentOf(unit), 'manifest').replace(/\.json$/, `.${name}-v${version}.json`)
  return { kind: `manifest/${name}/v${version}`, key }
}
