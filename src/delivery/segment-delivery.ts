import { type Clock, isoTimestamp, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Backoff } from '#lib/retry.ts'
import type { Semaphore } from '#lib/semaphore.ts'
import type { Logger } from '#lib/telemetry.ts'
import { contentTypeOf, objectKey, type SegmentName } from '#model/artifact.ts'
import { type ArtifactFile, commitId, type SegmentCommit } from '#model/commit.ts'
import type { DestinationTarget } from '#model/destination.ts'
import type { OutputFormat } from '#model/endpoint.ts'
import type { BoundView, SnapshotEndpoint } from '#model/snapshot.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { SegmentError } from '#wal/segment-reader.ts'
import { type BuiltArtifacts, buildArtifacts, RequiredViewFailed } from './artifacts/build.ts'
import { type Access, unlessReadDenied } from './bucket.ts'
import type { CrashLedger } from './crash-ledger.ts'
import type { DestinationBackoff } from './destination-backoff.ts'
import { deliveryLimits } from './limits.ts'
import { decodeMarker, encodeMarker, withManifest } from './marker.ts'
import { areThere, whatIsForeign } from './marker-check.ts'
import type { SegmentRef, SegmentSource } from './segments.ts'
import { metadataOf, type Uploader } from './uploader.ts'

const markerKind = { type: 'marker' } as const
/** Failed conversions after which a segment is parked. */
const buildAttemptsMax = 5
const retryDelay = { delayMsMin: deliveryLimits.retryDelayMsMin, delayMsMax: deliveryLimits.retryDelayMsMax }

export type SegmentDeliveryOptions = {
  readonly nodeId: string
  readonly segments: SegmentSource
  readonly scratch: string
  /** Of one conversion. */
  readonly memoryBytes: number
  readonly builds: Semaphore
  readonly uploader: Uploader
  readonly backoff: DestinationBackoff
  readonly stores: ObjectStores
  readonly crashes: CrashLedger
  /** Durable when it resolves. */
  readonly commit: (commit: SegmentCommit) => Promise<void>
  /** The endpoint as it is now. */
  readonly endpoint: (id: string) => SnapshotEndpoint | undefined
  /** Aborts when the next snapshot comes. */
  readonly nextSnapshot: () => AbortSignal
  readonly clock: Clock
  readonly logger: Logger
}

export type DeliveryRun = {
  readonly segment: SegmentRef
  /** It lay here when the process started: an earlier run may have delivered it already. */
  readonly recovered: boolean
  /** Resolves when every earlier segment of the log is committed or parked. */
  readonly turn: Promise<unknown>
  /** Says in words what it waits for, and null when it goes on. */
  readonly report: (blockedBy: string | null) => void
  readonly signal: AbortSignal
}

type Target = DestinationTarget & { readonly session: string }

type Uploaded = { readonly target: DestinationTarget; readonly artifacts: Readonly<Record<string, ArtifactFile>> }

type Facts = {
  readonly name: SegmentName
  readonly records: number
  readonly walBytes: number
  readonly sealedAt: string
}

/**
 * Takes one sealed segment to committed: build, upload, marker, commit.
 *
 * Owns: the steps and their retries. Does not own: which segments there are, in what order they take their turn, removing them.
 * Law: the marker is put only in turn, and only when every artifact it lists was just seen in the same bucket: buckets are emptied, and
 * deleted and made anew, while segments wait. The commit is given away only after the marker. The bucket is the customer's: a marker found
 * there counts only as far as this node would have written it.
 */
export class SegmentDelivery {
  readonly #options: SegmentDeliveryOptions
  /** When it was last logged that something waits, by what for. */
  readonly #warnedAt = new Map<string | undefined, number>()

  constructor(options: SegmentDeliveryOptions) {
    this.#options = options
  }

  /** Throws only when the signal aborts; then everything can be done again. */
  async run(run: DeliveryRun): Promise<'committed' | 'parked'> {
    const id = commitId(this.#options.nodeId, run.segment.incarnation, run.segment.seq)
    const facts = await this.#orPark(id, run, async () => this.#readFacts(run.segment))
    if (facts === undefined) return 'parked'
    if (run.recovered && (await this.#adopt(facts, run))) return 'committed'
    await this.#untilWorthBuilding(facts, run)
    const startedAt = this.#options.clock.monotonic()
    const built = await this.#orPark(id, run, () => this.#build(id, facts, run))
    if (built === undefined) return 'parked'
    try {
      await this.#deliver(id, facts, built, startedAt, run)
    } finally {
      await built.remove()
    }
    return 'committed'
  }

  async #readFacts(segment: SegmentRef): Promise<Facts> {
    const { logName, incarnation, seq } = segment
    const reader = await this.#options.segments.open(segment)
    try {
      const { sealedAtMicros, records } = reader.footer
      return {
        name: { endpointId: logName, nodeId: this.#options.nodeId, log: incarnation, seq, sealedAtMicros },
        records,
        walBytes: reader.bytes,
        sealedAt: isoTimestamp(Math.floor(sealedAtMicros / 1000)),
      }
    } finally {
      await reader.close()
    }
  }

  /** The marker of an earlier run says that the segment is delivered: its commit is given away again, as it was. */
  async #adopt(facts: Facts, run: DeliveryRun): Promise<boolean> {
    return this.#retry(facts, run, async (target) => {
      const key = objectKey(target.prefix, facts.name, markerKind)
      // Where the marker may not be read, the segment is delivered again, under the same names.
      const read = (store: ObjectStore) => unlessReadDenied(() => store.get(key, run.signal), undefined)
      const bytes = await this.#paced('read', target, run, read)
      const found = bytes === undefined ? undefined : decodeMarker(key, bytes)
      if (found === undefined || !this.#isOwn(found, facts, target)) return false
      await run.turn
      run.signal.throwIfAborted()
      const { id, bucket, region } = target
      await this.#options.commit({ ...found, wal_bytes: facts.walBytes, destination: { id, bucket, region } })
      return true
    })
  }

  /** Whether the marker says of this very segment what this node would. What else it says goes to control, and files are removed by it. */
  #isOwn(found: SegmentCommit, { name, records, sealedAt }: Facts, target: Target): boolean {
    const { endpointId, nodeId, log, seq } = name
    const views = new Set(this.#options.endpoint(endpointId)?.views.map(({ view_id }) => view_id))
    const named = [...found.views, ...Object.values(found.artifacts)].flatMap(({ view_id }) => view_id ?? [])
    return (
      found.id === commitId(nodeId, log, seq) &&
      found.endpoint_id === endpointId &&
      found.node_id === nodeId &&
      found.log === log &&
      found.seq === seq &&
      found.records === records &&
      found.sealed_at === sealedAt &&
      whatIsForeign(found, name, target) === undefined &&
      named.every((id) => views.has(id))
    )
  }

  /** What is built lies on this disk beside the log: while a destination takes nothing, the first segment of each log alone. */
  async #untilWorthBuilding({ name }: Facts, run: DeliveryRun): Promise<void> {
    const { endpoint, backoff, nextSnapshot } = this.#options
    for (;;) {
      run.signal.throwIfAborted()
      const changed = nextSnapshot()
      const place = endpoint(name.endpointId)?.destination?.id
      const outage = place === undefined ? undefined : backoff.find(place)
      if (outage === undefined) return
      run.report(outage.reason)
      const isFirst = await isTurnBefore(run.turn, AbortSignal.any([run.signal, changed, outage.over]))
      if (isFirst) return
    }
  }

  async #build(id: string, facts: Facts, run: DeliveryRun): Promise<BuiltArtifacts> {
    const { builds, crashes } = this.#options
    // What may have killed the process is converted with nothing beside it.
    using _slot = await builds.acquire(crashes.isSuspect(id) ? builds.capacity : 1, run.signal)
    await crashes.begin(id)
    try {
      const endpoint = this.#options.endpoint(facts.name.endpointId)
      // What to make of it, and whether anything can go anywhere, is known only from the configuration.
      if (endpoint === undefined) throw new NotYetError('the configuration of the endpoint is not here yet')
      if (endpoint.destination === null) throw new NotYetError('no destination is bound to the endpoint')
      const wanted = endpoint.output_formats
      const views = wanted.includes('parquet_views') ? viewsFor(endpoint, facts.sealedAt) : []
      const keepsRecords = wanted.includes('parquet') || wanted.includes('segments')
      // Nobody asked for the records to vanish: where no view takes them, they go out as raw Parquet.
      if (!keepsRecords && views.length === 0) return await this.#convert([...wanted, 'parquet'], views, run)
      const built = await this.#convert(wanted, views, run)
      if (keepsRecords || built.failed.length === 0) return built
      await built.remove()
      return await this.#convert([...wanted, 'parquet'], views, run)
    } finally {
      await crashes.end(id)
    }
  }

  async #convert(
    outputFormats: readonly OutputFormat[],
    views: readonly BoundView[],
    { segment, signal }: DeliveryRun,
  ): Promise<BuiltArtifacts> {
    const { segments, scratch, memoryBytes, clock } = this.#options
    const reader = await segments.open(segment)
    try {
      return await buildArtifacts({
        segment: reader,
        outputFormats,
        views,
        scratchDirectory: scratch,
        memoryBytes,
        signal,
        clock,
      })
    } finally {
      await reader.close()
    }
  }

  async #deliver(id: string, facts: Facts, built: BuiltArtifacts, startedAt: number, run: DeliveryRun): Promise<void> {
    const { stores, uploader, clock } = this.#options
    const { endpointId } = facts.name
    const { report, signal } = run
    let uploaded: Uploaded | undefined
    await this.#retry(facts, run, async (target) => {
      const store = stores.open(target)
      const { name } = facts
      const { prefix } = target
      // The destination may have been changed while this one waited: then everything goes to the one that is bound now.
      if (uploaded === undefined || !isSamePlace(uploaded.target, target)) {
        const { files } = built
        uploaded = {
          target,
          artifacts: await uploader.upload({ place: target.id, store, prefix, segment: name, files, report, signal }),
        }
        report(null)
        await run.turn
        run.signal.throwIfAborted()
        const now = this.#options.endpoint(endpointId)?.destination
        if (now !== undefined && now !== null && !isSamePlace(now, target)) throw new Error('the destination was changed')
      }
      const { artifacts } = uploaded
      if (!(await this.#paced('read', target, run, () => areThere(store, artifacts, run.signal)))) {
        uploaded = undefined
        throw new Error('files of the segment are gone from the bucket, from where something deleted them; they go up again')
      }
      const commit: SegmentCommit = {
        id,
        endpoint_id: endpointId,
        node_id: facts.name.nodeId,
        log: facts.name.log,
        seq: facts.name.seq,
        records: facts.records,
        wal_bytes: facts.walBytes,
        sealed_at: facts.sealedAt,
        uploaded_at: isoTimestamp(clock.now()),
        duration_ms: Math.round(clock.monotonic() - startedAt),
        destination: { id: target.id, bucket: target.bucket, region: target.region },
        artifacts,
        views: [...built.views],
      }
      const marker = encodeMarker(commit)
      const key = objectKey(prefix, name, markerKind)
      const reported = withManifest(commit, key, marker)
      const { manifest } = reported.artifacts
      if (manifest === undefined) throw new Error('a commit without its marker')
      const metadata = metadataOf(name, markerKind, manifest)
      const contentType = contentTypeOf(markerKind)
      await this.#paced('write', target, run, () => store.put(key, marker, { contentType, metadata, signal }))
      await this.#options.commit(reported)
    })
  }

  /** One request after the other while the destination is in outage, as with files. */
  async #paced<T>(
    access: Access,
    target: Target,
    { report, signal }: DeliveryRun,
    request: (store: ObjectStore) => Promise<T>,
  ): Promise<T> {
    const { stores, backoff } = this.#options
    const outage = backoff.find(target.id)
    if (outage !== undefined) report(outage.reason)
    using _turn = await outage?.acquire(signal)
    try {
      const result = await request(stores.open(target))
      backoff.recordSuccess(target.id, access)
      return result
    } catch (error) {
      if (!signal.aborted) backoff.recordFailure(target.id, access, error)
      throw error
    }
  }

  /** Tries for ever, each time with the endpoint's destination as bound then. A new snapshot ends a wait. */
  async #retry<T>(facts: Facts, run: DeliveryRun, attempt: (target: Target) => Promise<T>): Promise<T> {
    const { clock, backoff } = this.#options
    const { endpointId, seq } = facts.name
    const delay = new Backoff(retryDelay)
    for (;;) {
      run.signal.throwIfAborted()
      const snapshotSignal = this.#options.nextSnapshot()
      const { account_id = '', destination = null } = this.#options.endpoint(endpointId) ?? {}
      try {
        if (destination === null) throw new NotYetError('no destination is bound to the endpoint')
        const result = await attempt({ ...destination, session: sessionName({ account_id, endpoint_id: endpointId }) })
        run.report(null)
        return result
      } catch (error) {
        run.signal.throwIfAborted()
        run.report(errorMessage(error))
        this.#warn(destination?.id, { endpoint: endpointId, seq, reason: errorMessage(error) }, 'a segment waits to be delivered')
        const over = destination === null ? undefined : backoff.find(destination.id)?.over
        await sleep(clock, delay.next(), AbortSignal.any([run.signal, snapshotSignal, ...(over === undefined ? [] : [over])]))
      }
    }
  }

  /** Tries the conversion again while that may help; undefined once the segment is parked. */
  async #orPark<T>(id: string, run: DeliveryRun, attempt: () => Promise<T>): Promise<T | undefined> {
    const { clock, logger, crashes } = this.#options
    const delay = new Backoff(retryDelay)
    let failures = 0
    for (;;) {
      run.signal.throwIfAborted()
      const snapshotSignal = this.#options.nextSnapshot()
      try {
        const result = await attempt()
        run.report(null)
        return result
      } catch (error) {
        run.signal.throwIfAborted()
        const reason = errorMessage(error)
        run.report(reason)
        if (!mayPassByItself(error)) failures += 1
        // A damaged file stays damaged.
        if (failures >= buildAttemptsMax || error instanceof SegmentError) {
          await crashes.park(id, reason)
          logger.error({ segment: id, endpoint: run.segment.logName, reason }, 'a segment cannot be converted and is parked')
          return undefined
        }
        const about = error instanceof NotYetError ? undefined : run.segment.logName
        this.#warn(
          about,
          { segment: id, endpoint: run.segment.logName, reason },
          'a segment could not be converted; trying again',
        )
        await sleep(clock, delay.next(), AbortSignal.any([run.signal, snapshotSignal]))
      }
    }
  }

  /** Once a minute for what shares a cause: thousands of segments may wait for the same. */
  #warn(about: string | undefined, facts: object, message: string): void {
    const { clock, logger } = this.#options
    const now = clock.monotonic()
    for (const [of, at] of this.#warnedAt) if (now - at >= deliveryLimits.warnIntervalMs) this.#warnedAt.delete(of)
    if (this.#warnedAt.has(about)) return
    this.#warnedAt.set(about, now)
    logger.warn(facts, message)
  }
}

/** Whether the turn comes before the signal aborts. */
async function isTurnBefore(turn: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const onAbort = () => resolve(false)
  signal.addEventListener('abort', onAbort, { once: true })
  void turn.then(() => resolve(true))
  const isFirst = await promise
  signal.removeEventListener('abort', onAbort)
  return isFirst
}

/** Something is missing that the next snapshot may bring. */
class NotYetError extends Error {
  override readonly name = 'NotYetError'
}

/** A view that holds the segment, or a full disk, is nothing that parking the segment would mend. */
function mayPassByItself(error: unknown): boolean {
  if (error instanceof RequiredViewFailed || error instanceof NotYetError) return true
  return /ENOSPC|EDQUOT|EMFILE|No space left|Too many open files/i.test(errorMessage(error))
}

function viewsFor(endpoint: SnapshotEndpoint | undefined, sealedAt: string): readonly BoundView[] {
  return endpoint?.views.filter(({ canary_start_ts }) => canary_start_ts === null || canary_start_ts <= sealedAt) ?? []
}

/** What goes there lies together, under one key. */
function isSamePlace(a: DestinationTarget, b: DestinationTarget): boolean {
  const isSameBucket = a.id === b.id && a.bucket === b.bucket && a.region === b.region
  return isSameBucket && a.prefix === b.prefix && a.kms_key_arn === b.kms_key_arn
}
