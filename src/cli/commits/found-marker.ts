/**
 * A marker that was found in a bucket.
 *
 * Law: the bucket is the customer's, and anything may lie there. Only what a node of ours would have written under this very key, for
 * this endpoint and into this bucket, is taken; the rest is refused with its reason.
 */

import { decodeUnitMarker, type UnitMarker } from '#delivery/jobs/unit-marker.ts'
import { decodeMarker } from '#delivery/marker.ts'
import { whatIsForeign } from '#delivery/marker-check.ts'
import { objectKey } from '#delivery/object-key.ts'
import { commitId, type SegmentCommit } from '#model/commit.ts'
import type { CommitPlace } from '#store/commit-places.ts'

export type FoundMarker =
  | { readonly kind: 'segment'; readonly commit: SegmentCommit }
  /** Of a backfill or a re-drive. */
  | { readonly kind: 'addition'; readonly addition: UnitMarker }

/** The id of the commit that the marker of this key belongs to, and whether it is that commit's own. Undefined: no marker of ours. */
export function nameOfMarker(key: string): { readonly commitId: string; readonly isAddition: boolean } | undefined {
  const [, commitId, addition] = /\/([0-9a-f-]{36}-[A-Za-z0-9_-]+-\d{12,})(\.[a-z][a-z0-9_]*-v\d+)?\.json$/.exec(key) ?? []
  return commitId === undefined ? undefined : { commitId, isAddition: addition !== undefined }
}

/** What the marker says, or why it is refused. */
export function readMarker(key: string, bytes: Uint8Array, place: CommitPlace): FoundMarker | { readonly refused: string } {
  const commit = decodeMarker(key, bytes)
  const addition = commit === undefined ? decodeUnitMarker(key, bytes) : undefined
  const marker = commit ?? addition
  if (marker === undefined) return { refused: 'damaged, or no marker of this program' }
  const { endpoint_id, node_id, log, seq } = marker
  if (endpoint_id !== place.endpoint_id) return { refused: `it is of another endpoint, ${endpoint_id}` }
  const segment = addition?.commit_id ?? marker.id
  if (segment !== commitId(node_id, log, seq)) return { refused: 'its id is not that of its node, log and seq' }
  const { prefix, bucket } = place.target
  const sealedAtMicros = Date.parse(marker.sealed_at) * 1000
  const name = { prefix, endpointId: endpoint_id, nodeId: node_id, log, seq, sealedAtMicros }
  const ownKey = objectKey(name, 'manifest')
  const expected = addition === undefined ? ownKey : ownKey.replace(/[^/]*$/, `${marker.id}.json`)
  if (key !== expected) return { refused: `it belongs at ${expected}` }
  const foreign = whatIsForeign(marker, name, bucket)
  if (foreign !== undefined) return { refused: foreign }
  if (addition !== undefined) return { kind: 'addition', addition }
  return commit === undefined ? { refused: 'no marker' } : { kind: 'segment', commit }
}
