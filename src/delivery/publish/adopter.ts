/**
 * Stage 1 of a delivery, for segments that may have been delivered before: finds the marker that says so.
 *
 * Owns: which marker counts. Does not own: what control has recorded (known-commits.ts), what happens to the commit.
 * Law: a commit never changes. A segment whose commit control has recorded, or whose marker this node has written, is not delivered again,
 * whatever is bound to the endpoint by now. The bucket belongs to the customer: a marker counts only if it carries this node's signature.
 */
import { objectKey } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { DeliveryRun, SegmentFacts } from '../segments/delivery-run.ts'
import { unlessReadDenied } from './bucket.ts'
import type { BoundDestination } from './destination-retry.ts'
import { findForeignArtifact } from './foreign-artifact.ts'
import { decodeMarker } from './marker.ts'
import type { MarkerSeal } from './marker-seal.ts'

export type AdopterOptions = { readonly seal: MarkerSeal }

/** `isSigned`: a machine that has this log and its key wrote it. Anyone who may write to the bucket can write the other ones. */
export type FoundMarker = { readonly commit: SegmentCommit; readonly isSigned: boolean }

export class Adopter {
  readonly #options: AdopterOptions

  constructor(options: AdopterOptions) {
    this.#options = options
  }

  /**
   * Returns the commit of the segment's marker in the bucket. Returns undefined if no marker counts or the role may not read. The segment is
   * then delivered again, under the same keys.
   */
  async findMarker(
    facts: SegmentFacts,
    destination: BoundDestination,
    { signal }: DeliveryRun,
  ): Promise<SegmentCommit | undefined> {
    const { target, bucket } = destination
    const key = objectKey(target.prefix, facts.name, { type: 'marker' })
    const body = await bucket.request('read', (store) => unlessReadDenied(() => store.get(key, signal), undefined))
    const found = body && this.readMarker(body, facts, destination)
    return found?.isSigned === true ? found.commit : undefined
  }

  /** Returns what an object in the place of the segment's marker says. Returns undefined if it is no marker that a node writes there. */
  readMarker(
    body: Uint8Array,
    { id, name }: SegmentFacts,
    { target }: Pick<BoundDestination, 'target'>,
  ): FoundMarker | undefined {
    const found = decodeMarker(objectKey(target.prefix, name, { type: 'marker' }), body)
    // Also a marker of its own counts only where it was written: buckets are copied.
    if (found?.id !== id || findForeignArtifact(found, name, target) !== undefined) return undefined
    const { id: destinationId, bucket: bucketName, region } = target
    const destination = { id: destinationId, bucket: bucketName, region }
    return { commit: { ...found, destination }, isSigned: this.#options.seal.isOwn(body) }
  }
}
