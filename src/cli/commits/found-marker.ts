/**
 * A marker that was found in a bucket.
 *
 * Law: the bucket is the customer's, and anything may lie there. Only what a node of ours would have written under this very key, for
 * this endpoint and into this bucket, is taken; the rest is refused with its reason.
 */

import { findForeignArtifact } from '#delivery/adopt/foreign-artifact.ts'
import { decodeMarker } from '#delivery/commit/marker.ts'
import { decodeUnitMarker, type UnitMarker } from '#delivery/jobs/unit-marker.ts'
import { additionId, objectKey, type ViewVersion } from '#model/artifact.ts'
import { commitId, type SegmentCommit } from '#model/commit.ts'
import type { MarkerFolder } from '#store/marker-folders.ts'

export type FoundMarker =
  | { readonly kind: 'segment'; readonly commit: SegmentCommit }
  /** Of a backfill or a re-drive. */
  | { readonly kind: 'addition'; readonly addition: UnitMarker }

/** What the marker says, or why it is refused. */
export function readMarker(key: string, bytes: Uint8Array, folder: MarkerFolder): FoundMarker | { readonly refused: string } {
  const commit = decodeMarker(key, bytes)
  const addition = commit === undefined ? decodeUnitMarker(key, bytes) : undefined
  const marker = commit ?? addition
  if (marker === undefined) return { refused: 'damaged, or no marker of this program' }
  const { endpoint_id, node_id, log, seq } = marker
  if (endpoint_id !== folder.endpoint_id) return { refused: `it is of another endpoint, ${endpoint_id}` }
  const own = commitId(node_id, log, seq)
  const view = viewOf(addition)
  const id = view === undefined ? own : additionId(own, view)
  if (marker.id !== id || (addition !== undefined && addition.commit_id !== own)) {
    return { refused: 'its id is not that of its node, log and seq' }
  }
  const sealedAtMicros = Date.parse(marker.sealed_at) * 1000
  const name = { endpointId: endpoint_id, nodeId: node_id, log, seq, sealedAtMicros }
  const expected = objectKey(
    folder.target.prefix,
    name,
    view === undefined ? { type: 'marker' } : { type: 'addition-marker', ...view },
  )
  if (key !== expected) return { refused: `it belongs at ${expected}` }
  const foreign = findForeignArtifact(marker, name, folder.target)
  if (foreign !== undefined) return { refused: foreign }
  if (addition !== undefined) return { kind: 'addition', addition }
  return commit === undefined ? { refused: 'no marker' } : { kind: 'segment', commit }
}

function viewOf(addition: UnitMarker | undefined): ViewVersion | undefined {
  const view = addition?.views[0]
  return view && { name: view.view_name, version: view.view_version }
}
