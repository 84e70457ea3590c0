import type { ArtifactKind, SegmentName } from '#model/artifact.ts'
import type { Unit } from '#model/job-protocol.ts'

export function segmentOf({ commit }: Unit): SegmentName {
  const { endpoint_id: endpointId, node_id: nodeId, log: incarnation, seq, sealed_at } = commit
  return { endpointId, nodeId, incarnation, seq, sealedAtMicros: Date.parse(sealed_at) * 1000 }
}

/**
 * Returns the kind of a unit's file, given its kind in live delivery. A backfill has the same kinds as live delivery. A re-drive produces
 * only some of the rows, so its kinds name the version whose rows it read.
 */
export function kindOf({ source }: Unit, live: ArtifactKind): ArtifactKind {
  if (source.kind !== 'dlq' || source.from_version === null) return live
  return live.type === 'view' || live.type === 'dlq' ? { ...live, redriveFrom: source.from_version } : live
}

/** Returns the kind of the unit's marker. A segment has one addition marker per view version, whatever the source of the rows. */
export function markerKindOf({ view: { name, version } }: Unit): ArtifactKind {
  return { type: 'addition-marker', name, version }
}
