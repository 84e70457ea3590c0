/**
 * Stage 2 of a delivery, for segments that existed at the start: finds out whether an earlier run delivered the segment.
 *
 * Owns: which marker counts. Does not own: what happens to its commit.
 * Law: the bucket belongs to the customer. A marker counts only if this node would have written it.
 */
import { objectKey } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import { unlessReadDenied } from '../bucket.ts'
import { decodeMarker } from '../commit/marker.ts'
import type { DeliveryRun, DeliveryTarget, SegmentFacts } from '../delivery-run.ts'
import type { BoundDestination } from '../destination-retry.ts'
import type { Endpoints } from '../endpoints.ts'
import { findForeignArtifact } from './foreign-artifact.ts'

export class Adopter {
  readonly #endpoints: Endpoints

  constructor({ endpoints }: { readonly endpoints: Endpoints }) {
    this.#endpoints = endpoints
  }

  /**
   * Returns the commit of the segment's marker in the bucket. Returns undefined if no marker counts or the role may not read. The segment is
   * then delivered again, under the same keys.
   */
  async find(
    facts: SegmentFacts,
    { target, bucket }: BoundDestination,
    { signal }: DeliveryRun,
  ): Promise<SegmentCommit | undefined> {
    const key = objectKey(target.prefix, facts.name, { type: 'marker' })
    const body = await bucket.request('read', (store) => unlessReadDenied(() => store.get(key, signal), undefined))
    const found = body === undefined ? undefined : decodeMarker(key, body)
    if (found === undefined || !this.#isOwn(found, facts, target)) return undefined
    const { id, bucket: name, region } = target
    return { ...found, wal_bytes: facts.walBytes, destination: { id, bucket: name, region } }
  }

  /** Control receives the rest of the marker and removes files according to it. So each fact that this node knows must match. */
  #isOwn(found: SegmentCommit, { id, name, records, recordsDamaged, sealedAt }: SegmentFacts, target: DeliveryTarget): boolean {
    const { endpointId, nodeId, log, seq } = name
    const views = new Set(this.#endpoints.find(endpointId)?.views.map(({ view_id }) => view_id))
    const named = [...found.views, ...Object.values(found.artifacts)].flatMap(({ view_id }) => view_id ?? [])
    return (
      found.id === id &&
      found.endpoint_id === endpointId &&
      found.node_id === nodeId &&
      found.log === log &&
      found.seq === seq &&
      // Delivered before it was damaged, the segment had more records.
      (found.records === records || (recordsDamaged > 0 && found.records > records)) &&
      found.sealed_at === sealedAt &&
      findForeignArtifact(found, name, target) === undefined &&
      named.every((id) => views.has(id))
    )
  }
}
