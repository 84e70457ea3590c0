import type { ArtifactKind, SegmentName } from '#model/artifact.ts'
import type { Unit } from '#model/job-protocol.ts'

export function segmentOf({ commit }: Unit): SegmentName {
  const { endpoint_id: endpointId, node_id: nodeId, log, seq, sealed_at } = commit
  return { endpointId, nodeId, log, seq, sealedAtMicros: Date.parse(sealed_at) * 1000 }
}

/**
 * Returns the kind of a file that a unit made, given its kind in live delivery. A backfill makes what live delivery would have made.
 * A re-drive makes only a part of it, and its files say which version's rows they were made from.
 */
export function kindOf({ source }: Unit, live: ArtifactKind): ArtifactKind {
  if (source.kind !== 'dlq' || source.from_version === null) return live
  return live.type === 'view' || live.type === 'dlq' ? { ...live, redriveFrom: source.from_version } : live
}

/** A segment has one addition marker for each view version, wherever the rows are from. */
export function markerKindOf({ view: { name, version } }: Unit): ArtifactKind {
  return { type: 'addition-marker', name, version }
}
