/**
 * Stage 4 of a delivery: waits for the segment's turn and calls the sinks.
 *
 * Owns: the order of these steps. Does not own: what a sink does, retries.
 * Law: the first sink, which writes the marker, is called only in turn. The other sinks are called only after it.
 */
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { objectKey } from '#model/artifact.ts'
import { type ArtifactFiles, boundQuality, type SegmentCommit, type ViewOutcome } from '#model/commit.ts'
import { type DeliveryRun, isSameLocation, type SegmentFacts } from '../segments/delivery-run.ts'
import type { Endpoints } from '../segments/endpoints.ts'
import { logCommit } from './commit-event.ts'
import type { CommitSink, FinishedSegment } from './commit-sink.ts'
import type { BoundDestination } from './destination-retry.ts'
import { encodeMarker, withMarker } from './marker.ts'
import type { MarkerSeal } from './marker-seal.ts'

export type CommitterOptions = {
  /** Called in this order. */
  readonly sinks: readonly CommitSink[]
  readonly seal: MarkerSeal
  readonly endpoints: Endpoints
  readonly clock: Clock
  readonly logger: Logger
}

export type Uploaded = {
  /** In the bucket that the commit goes to. */
  readonly artifacts: ArtifactFiles
  readonly views: readonly ViewOutcome[]
  /** When the conversion began, on the monotonic clock. */
  readonly startedAt: number
  /** Whether the marker in the bucket is to be replaced. */
  readonly replacesMarker: boolean
}

export class Committer {
  readonly #options: CommitterOptions
  /** By the uploaded files: a commit that is tried again has the same content, whichever attempt reached the bucket. */
  readonly #described = new WeakMap<ArtifactFiles, SegmentCommit>()

  constructor(options: CommitterOptions) {
    this.#options = options
  }

  /** Throws ArtifactsMissing, MarkerExists, the signal's reason, or an error of the bucket or a sink. */
  async commit(facts: SegmentFacts, uploaded: Uploaded, destination: BoundDestination, run: DeliveryRun): Promise<void> {
    const { target } = destination
    await this.#waitForTurn(run)
    const bound = this.#options.endpoints.find(facts.name.endpointId)?.destination ?? target
    if (!isSameLocation(bound, target)) throw new Error('the destination was changed while the segment waited')
    const commit = this.#described.get(uploaded.artifacts) ?? this.#describe(facts, uploaded, destination)
    this.#described.set(uploaded.artifacts, commit)
    await this.#record(commit, facts, destination, uploaded.replacesMarker ? 'replacing' : 'new', run)
  }

  /** Records a segment that an earlier run delivered. */
  async commitAdopted(found: SegmentCommit, facts: SegmentFacts, destination: BoundDestination, run: DeliveryRun): Promise<void> {
    await this.#waitForTurn(run)
    await this.#record(found, facts, destination, 'adopted', run)
  }

  async #waitForTurn({ turn, signal }: DeliveryRun): Promise<void> {
    await turn
    signal.throwIfAborted()
  }

  async #record(
    commit: SegmentCommit,
    { name: segment }: SegmentFacts,
    { target, bucket }: BoundDestination,
    marker: FinishedSegment['marker'],
    { signal }: DeliveryRun,
  ): Promise<void> {
    const { sinks, logger } = this.#options
    for (const sink of sinks) await sink.record({ commit, segment, target, bucket, marker, signal })
    logCommit(logger, commit, marker === 'adopted')
  }

  #describe(
    { id, name, records, recordsDamaged, walBytes, firstReceivedAt, sealedAt }: SegmentFacts,
    { artifacts, views, startedAt }: Uploaded,
    { target }: BoundDestination,
  ): SegmentCommit {
    const { clock, seal, endpoints } = this.#options
    const { position } = endpoints
    const unmarked: SegmentCommit = {
      id,
      endpoint_id: name.endpointId,
      node_id: name.nodeId,
      log: name.incarnation,
      seq: name.seq,
      records,
      records_damaged: recordsDamaged,
      wal_bytes: walBytes,
      first_received_at: firstReceivedAt,
      sealed_at: sealedAt,
      uploaded_at: isoTimestamp(clock.now()),
      duration_ms: Math.round(clock.monotonic() - startedAt),
      destination: { id: target.id, bucket: target.bucket, region: target.region },
      artifacts,
      views: boundQuality(views),
      ...(name.adoption !== undefined && { adoption: name.adoption }),
      ...(position && { position }),
    }
    const key = objectKey(target.prefix, name, { type: 'marker' })
    return withMarker(unmarked, key, encodeMarker(unmarked, seal))
  }
}
