/**
 * Reads markers that were found in a bucket.
 *
 * Law: the customer may store anything in the bucket. A marker is accepted only if a node would have written it under this key, for
 * this endpoint and into this bucket. Any other is rejected with a reason.
 */

import { decodeUnitMarker, type UnitMarker } from '#delivery/jobs/unit-marker.ts'
import { findForeignArtifact } from '#delivery/publish/foreign-artifact.ts'
import { decodeMarker } from '#delivery/publish/marker.ts'
import { additionId, objectKey, type ViewVersion } from '#model/artifact.ts'
import { commitId, type SegmentCommit } from '#model/commit.ts'
import type { MarkerFolder } from '#store/commits/marker-folders.ts'

/** The reason, for the operator. */
export type Rejected = { readonly rejected: string }

/** `expired`: older than commits are kept. */
export type Outcome = 'recorded' | 'known' | 'expired' | Rejected

export type FoundMarker =
  | { readonly type: 'segment'; readonly commit: SegmentCommit }
  /** Artifacts that a backfill or a re-drive added. */
  | { readonly type: 'addition'; readonly addition: UnitMarker }

/** Returns the content of a marker, or why it is rejected. */
export function readMarker(key: string, bytes: Uint8Array, folder: MarkerFolder): FoundMarker | Rejected {
  const commit = decodeMarker(key, bytes)
  const addition = commit === undefined ? decodeUnitMarker(key, bytes) : undefined
  const marker = commit ?? addition
  if (marker === undefined) return { rejected: 'damaged, or not a marker of Inlet' }
  const { endpoint_id, node_id, log, seq } = marker
  if (endpoint_id !== folder.endpoint_id) return { rejected: `it belongs to another endpoint, ${endpoint_id}` }
  const segmentCommitId = commitId(node_id, log, seq)
  const view = addedView(addition)
  const id = view === undefined ? segmentCommitId : additionId(segmentCommitId, view)
  if (marker.id !== id || (addition !== undefined && addition.commit_id !== segmentCommitId)) {
    return { rejected: 'its id does not match its node, log and seq' }
  }
  const sealedAtMicros = Date.parse(marker.sealed_at) * 1000
  const name = { endpointId: endpoint_id, nodeId: node_id, incarnation: log, seq, sealedAtMicros }
  const expected = objectKey(
    folder.target.prefix,
    name,
    view === undefined ? { type: 'marker' } : { type: 'addition-marker', ...view },
  )
  if (key !== expected) return { rejected: `its key should be ${expected}` }
  const foreign = findForeignArtifact(marker, name, folder.target)
  if (foreign !== undefined) return { rejected: foreign }
  if (addition !== undefined) return { type: 'addition', addition }
  return commit === undefined ? { rejected: 'not a marker' } : { type: 'segment', commit }
}

function addedView(addition: UnitMarker | undefined): ViewVersion | undefined {
  const view = addition?.views[0]
  return view && { name: view.view_name, version: view.view_version }
}
