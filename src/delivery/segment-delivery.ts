/**
 * Delivers one sealed segment in four stages: adopt, convert, upload, commit.
 *
 * Owns: the order of the stages, and that files are uploaded again after a change of destination. Does not own: which segments exist
 * (pipeline.ts), whose turn it is (log-queue.ts), removing segments (janitor.ts).
 * Law: built files are removed however the delivery ends. An upload counts only for its own bucket, and only while its files are there.
 */
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ThrottledWarnings } from '#lib/throttled-warnings.ts'
import type { SegmentSource } from '#log/segment-source.ts'
import { type ArtifactFiles, commitId, listKeys, type SegmentCommit } from '#model/commit.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { Converter, type ConverterOptions } from './convert/converter.ts'
import type { BuiltArtifacts } from './convert/segment-build.ts'
import { Adopter, type AdopterOptions } from './publish/adopter.ts'
import type { CommitSink } from './publish/commit-sink.ts'
import { Committer } from './publish/committer.ts'
import type { DestinationBackoff } from './publish/destination-backoff.ts'
import { type BoundDestination, DestinationRetry } from './publish/destination-retry.ts'
import type { KnownCommit, KnownCommits } from './publish/known-commits.ts'
import { ArtifactsMissing, MarkerExists } from './publish/marker.ts'
import { removeFiles } from './publish/remove-files.ts'
import type { Uploader } from './publish/uploader.ts'
import type { SegmentTrace, SegmentTraces } from './segment-traces.ts'
import {
  DeliveryEnded,
  type DeliveryOutcome,
  type DeliveryRun,
  type DeliveryTarget,
  isSameLocation,
  type SegmentFacts,
} from './segments/delivery-run.ts'
import { deliveryLimits } from './segments/limits.ts'
import type { KeyWindows } from './windows/key-windows.ts'

export type SegmentDeliveryOptions = Omit<ConverterOptions, 'warnings'> &
  AdopterOptions & {
    readonly knownCommits: KnownCommits
    readonly stores: ObjectStores
    readonly backoff: DestinationBackoff
    readonly uploader: Uploader
    /** The marker first, the outbox last: see CommitSink. */
    readonly sinks: readonly CommitSink[]
    /** Undefined if no segment is traced. */
    readonly traces?: SegmentTraces | undefined
    readonly clock: Clock
    readonly random: Random
    readonly logger: Logger
  }

export class SegmentDelivery {
  readonly #converter: Converter
  readonly #adopter: Adopter
  readonly #knownCommits: KnownCommits
  readonly #uploader: Uploader
  readonly #committer: Committer
  readonly #retry: DestinationRetry
  readonly #segments: SegmentSource
  readonly #stores: ObjectStores
  readonly #traces: SegmentTraces | undefined
  readonly #windows: KeyWindows | undefined
  readonly #nodeId: string
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #startedAtMicros: number

  constructor(options: SegmentDeliveryOptions) {
    const { clock, stores, uploader } = options
    const warnings = new ThrottledWarnings({ ...options, intervalMs: deliveryLimits.warnIntervalMs })
    this.#converter = new Converter({ ...options, warnings })
    this.#adopter = new Adopter(options)
    this.#knownCommits = options.knownCommits
    this.#uploader = uploader
    this.#committer = new Committer(options)
    this.#retry = new DestinationRetry({ ...options, warnings })
    this.#stores = stores
    this.#traces = options.traces
    this.#segments = options.segments
    this.#windows = options.windows
    this.#nodeId = options.nodeId
    this.#clock = clock
    this.#logger = options.logger
    this.#startedAtMicros = clock.now() * 1_000
  }

  /** Throws only the signal's reason. After that, the delivery can be repeated. */
  async run(run: DeliveryRun): Promise<DeliveryOutcome> {
    try {
      const facts = await this.#converter.readFacts(run)
      // An earlier run may have delivered it, if somebody copies segments back one by one.
      const mayBeCommitted = run.mayBeCommitted || facts.name.sealedAtMicros < this.#startedAtMicros
      if (mayBeCommitted && (await this.#endIfCommitted(facts, run))) return 'committed'
      await this.#retry.waitForDestination(facts, run)
      const startedAt = this.#clock.monotonic()
      const measure = measureIn(this.#traces?.begin(facts))
      const built = await measure('convert', this.#converter.convert(facts, run))
      try {
        await this.#deliver(facts, built, { startedAt, measure }, run)
      } finally {
        // Files that stay are removed at the next start.
        await built.remove().catch((error: unknown) => this.#logger.warn({ err: error }, 'built files not removed'))
      }
      await this.#windows?.confirm(facts.name.endpointId, facts.id)
      return 'committed'
    } catch (error) {
      if (!(error instanceof DeliveryEnded)) throw error
      const { logName, incarnation, seq } = run.segment
      if (error.outcome !== 'again') await this.#windows?.forget(logName, commitId(this.#nodeId, incarnation, seq))
      return error.outcome
    }
  }

  /**
   * Ends a segment that an earlier run delivered, and returns whether one did. Control is asked before each attempt: it may have been
   * away before, and the endpoint of a segment that came back may be gone, with its destination.
   */
  async #endIfCommitted(facts: SegmentFacts, run: DeliveryRun): Promise<boolean> {
    const adopt = (destination: BoundDestination) => this.#adopt(facts, destination, run)
    return this.#retry.run(facts, run, adopt, async () => (await this.#removeIfRecorded(facts, run)) || undefined)
  }

  /** Removes a segment that came back after its commit, for example with a restored volume. */
  async #removeIfRecorded(facts: SegmentFacts, run: DeliveryRun): Promise<boolean> {
    // Its marker may be gone: the customer may have removed it, so it is not written again.
    const found = await this.#knownCommits.find(facts.id, run)
    if (found === undefined) return false
    const outcome = await this.#removeRecorded(found, facts, run)
    if (outcome === 'quarantined') throw new DeliveryEnded(outcome)
    return true
  }

  async #removeRecorded(found: KnownCommit, facts: SegmentFacts, run: DeliveryRun): Promise<'committed' | 'quarantined'> {
    const { id, records } = facts
    await this.#windows?.confirm(facts.name.endpointId, id)
    if (found.records < records) {
      await this.#quarantine(facts, found.records, run)
      return 'quarantined'
    }
    await this.#segments.remove(run.segment)
    this.#logger.info({ segment: id, records }, 'segment removed: its commit is recorded already')
    return 'committed'
  }

  /** Keeps a segment that has more than its commit: that never changes, and no record may be lost. */
  async #quarantine({ id, records }: SegmentFacts, committed: number, { segment }: DeliveryRun): Promise<void> {
    const reason = `it came back after its commit, with ${records} records instead of ${committed}`
    const quarantine = await this.#segments.quarantine(segment, reason)
    this.#logger.error({ segment: id, records, committed, quarantine }, 'segment has more records than its commit, and is kept')
  }

  async #adopt(facts: SegmentFacts, destination: BoundDestination, run: DeliveryRun): Promise<boolean> {
    const found = await this.#adopter.findMarker(facts, destination, run)
    if (found === undefined) return false
    await this.#commitFound(found, facts, destination, run)
    return true
  }

  async #commitFound(found: SegmentCommit, facts: SegmentFacts, destination: BoundDestination, run: DeliveryRun): Promise<void> {
    if (found.records < facts.records) await this.#quarantine(facts, found.records, run)
    await this.#committer.commitAdopted(found, facts, destination, run)
    await this.#windows?.confirm(facts.name.endpointId, facts.id)
  }

  async #deliver(
    facts: SegmentFacts,
    built: BuiltArtifacts,
    { startedAt, measure }: { readonly startedAt: number; readonly measure: Measure },
    run: DeliveryRun,
  ): Promise<void> {
    let uploaded: { readonly target: DeliveryTarget; readonly artifacts: ArtifactFiles } | undefined
    let replaced: ArtifactFiles | undefined
    let isDoubtful = false
    // An attempt that throws is repeated, so how the delivery ends is what it returns.
    const outcome = await this.#retry.run(facts, run, async (destination): Promise<Ending> => {
      const { target } = destination
      if (uploaded === undefined || !isSameLocation(uploaded.target, target)) {
        if (!(await (isDoubtful ? built.isIntact() : built.isComplete()))) return 'again'
        const artifacts = await measure('upload', this.#upload(facts, built, target, run)).catch((error: unknown) => {
          isDoubtful = isDamaged(error)
          throw error
        })
        uploaded = { target, artifacts }
        run.report(null)
      }
      try {
        const { artifacts } = uploaded
        const finished = { artifacts, views: built.views, startedAt, replacesMarker: replaced !== undefined }
        await measure('commit', this.#committer.commit(facts, finished, destination, run))
        if (replaced !== undefined) await this.#removeUnlisted(replaced, listKeys(artifacts), destination, run)
      } catch (error) {
        if (error instanceof ArtifactsMissing) uploaded = undefined
        if (!(error instanceof MarkerExists) || uploaded === undefined) throw error
        const found = await this.#resolveMarkerConflict(error.found, uploaded.artifacts, facts, destination, run)
        if (typeof found === 'string') return found
        replaced = found.replaced
        throw error
      }
      return 'committed'
    })
    if (outcome === 'committed') return
    if (outcome === 'again') this.#logger.warn({ segment: facts.id }, 'built files were removed or damaged; building them again')
    throw new DeliveryEnded(outcome)
  }

  /**
   * Looks whose marker the bucket has. Takes it over if it is the commit of the segment: then another machine with a copy of this log was first.
   * Otherwise the marker is to be replaced: it is one of this machine that nothing relies on yet, or no commit at all.
   */
  async #resolveMarkerConflict(
    marker: Uint8Array,
    uploaded: ArtifactFiles,
    facts: SegmentFacts,
    destination: BoundDestination,
    run: DeliveryRun,
  ): Promise<Ending | { readonly replaced: ArtifactFiles }> {
    const found = this.#adopter.readMarker(marker, facts, destination)
    const adoption = found?.commit.adoption
    // A commit that was read lists its marker, too, whose key is that of both machines.
    const { manifest: _, ...artifacts } = found?.commit.artifacts ?? {}
    if (found?.isSigned === true && adoption === facts.name.adoption) return { replaced: artifacts }
    // A machine that adopted the log without its key signs with another one: control knows its commits.
    const recorded = found?.isSigned === true ? undefined : await this.#knownCommits.ask(facts.id, run.signal)
    if (found?.isSigned !== true && recorded === undefined) {
      const bytes = marker.byteLength
      this.#logger.warn(
        { segment: facts.id, bytes },
        'an object in the place of the marker is replaced: it is no commit of this log',
      )
      return { replaced: artifacts }
    }
    this.#logger.warn({ segment: facts.id }, 'another machine with this log has committed the segment: its commit counts')
    // Anybody can write a marker without a signature, and it may list none of the files that this machine has committed itself.
    const listed = found?.isSigned === true ? listKeys(artifacts) : recorded?.keys
    if (listed !== undefined) await this.#removeUnlisted(uploaded, listed, destination, run)
    if (recorded !== undefined) return await this.#removeRecorded(recorded, facts, run)
    if (found !== undefined) await this.#commitFound(found.commit, facts, destination, run)
    return 'committed'
  }

  /** Removes files of the segment that its commit does not list. */
  async #removeUnlisted(
    files: ArtifactFiles,
    listed: readonly string[],
    { bucket }: BoundDestination,
    { signal }: DeliveryRun,
  ): Promise<void> {
    const kept = new Set(listed)
    const unlisted = listKeys(files).filter((key) => !kept.has(key))
    await removeFiles(bucket, unlisted, { signal, logger: this.#logger })
  }

  async #upload(
    { name: segment }: SegmentFacts,
    { files }: BuiltArtifacts,
    target: DeliveryTarget,
    { report, signal }: DeliveryRun,
  ): Promise<ArtifactFiles> {
    const { id: destinationId, prefix } = target
    const store = this.#stores.open(target)
    return this.#uploader.upload({ destinationId, store, prefix, segment, files, report, signal })
  }
}

/** Whether the store got another content than was announced: the file may be damaged, or what was sent of it. */
function isDamaged(error: unknown): boolean {
  return error instanceof ObjectStoreError && error.reason === 'damaged'
}

/** How the delivery of built files ends. */
type Ending = 'committed' | 'quarantined' | 'again'

/** Runs a stage, and measures it if the segment is traced. */
type Measure = SegmentTrace['measure']

function measureIn(trace: SegmentTrace | undefined): Measure {
  return trace === undefined ? (_, work) => work : (name, work) => trace.measure(name, work)
}
