import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode } from '#lib/files.ts'
import { inParallel } from '#lib/in-parallel.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LogListing, Segment, SegmentSource } from '#log/segment-source.ts'
import { commitId } from '#model/commit.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import type { NodeFence } from '#node/node-fence.ts'
import type { DeliveryOutcome, DeliveryRun } from './delivery-run.ts'
import type { Endpoints } from './endpoints.ts'
import { HeldRecords } from './held-records.ts'
import { deliveryLimits } from './limits.ts'
import { LogQueue, type QueuedSegment } from './log-queue.ts'
import type { Parked, ParkedSegments } from './parked-segments.ts'
import { ReturningSegments } from './returning-segments.ts'
import { isEmpty, missingLog, type ScannedLog, scannedLog, toLag, unreadableLog } from './scanned-log.ts'

/** From the end of one scan to the start of the next. */
const scanIntervalMs = 250
/** The same after a watch reported sealed segments. */
const hintedScanIntervalMs = 20
/** After a long scan of many segments, the next one waits this many times as long, up to a bound. */
const scanRestFactor = 19
const scanIntervalMsMax = 10_000
/** The same after a read of the logs that a watch reported meanwhile. */
const hintRestFactor = 3
/** Logs that are read at the same time. */
const logsParallel = 16

export type PipelineOptions = {
  readonly nodeId: string
  readonly segments: SegmentSource
  readonly parked: Pick<ParkedSegments, 'read'>
  /** No delivery begins while it is closed. */
  readonly fence: Pick<NodeFence, 'reason' | 'whenOpen'>
  readonly deliver: (run: DeliveryRun) => Promise<DeliveryOutcome>
  /** Whether the segment's commit is in the outbox. */
  readonly isReported: (id: string) => boolean
  /** Why the commits of an endpoint cannot be reported, or its delivered segments not removed; null if nothing fails. */
  readonly reportingBlockedBy: (endpointId: string) => string | null
  readonly endpoints: Endpoints
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/**
 * Finds sealed segments and starts their delivery.
 *
 * Owns: the scans, and which segments still have to be delivered. Does not own: the order within a log (log-queue.ts), the steps of one
 * delivery (segment-delivery.ts).
 * Law: a segment is delivered only after every segment before it in its log is sealed. A watch only makes it found earlier: scans find everything.
 * Many logs make scans long and rare, so between two of them the logs that a watch reports are read: logs of one account must not delay the others.
 * A listing may be older than what happened since: a segment whose commit left the outbox meanwhile is in `#committed` before it is removed,
 * and stays there until a later listing no longer has it. So each listed segment is in one of both, or was never committed.
 */
export class Pipeline implements Service {
  readonly name = 'pipeline'
  readonly #options: PipelineOptions
  readonly #queues = new Map<string, LogQueue>()
  /** Ids of committed segments that may still be on disk, or in a listing that is older than their removal. */
  readonly #committed = new Set<string>()
  readonly #aborting = new AbortController()
  #stopping = false
  #scanning: Promise<void> = Promise.resolve()
  readonly #returning = new ReturningSegments()
  /** As of the last scan. */
  #scanned: readonly ScannedLog[] = []
  /** State of each log when its directory could be read last. */
  readonly #lastRead = new Map<string, ScannedLog>()
  readonly #records: HeldRecords
  #counting: Promise<void> = Promise.resolve()
  #scannedEpoch = -1
  #scannedAt: number | undefined
  #problem: string | null = null
  #endRest: () => void = () => undefined
  #unwatch: () => void = () => undefined
  /** Aborts when segments were sealed since the last scan or read of hinted logs began. */
  #sealed = new AbortController()
  /** The logs that they are in, as far as the watch tells. */
  #hinted = new Set<string>()

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#records = new HeldRecords(options.segments)
  }

  async start(): Promise<void> {
    const { segments, logger } = this.#options
    try {
      this.#unwatch = await segments.watch((logName) => this.#hint(logName))
    } catch (error) {
      logger.warn({ err: error, scanIntervalMs }, 'segment watch failed, scanning only')
    }
    this.#scanning = this.#scanRepeatedly()
  }

  /** Delivers until every log is done or stuck, or the signal aborts. The rest stays on disk. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping = true
    signal.addEventListener('abort', () => this.#aborting.abort(), { once: true })
    if (signal.aborted) this.#aborting.abort()
    this.#endRest()
    await this.#scanning
    await this.#counting
    this.#unwatch()
    this.#aborting.abort()
    await Promise.all([...this.#queues.values()].map((queue) => queue.ended()))
  }

  /** Takes back a segment whose commit was lost on this node. Its marker may be in the bucket, so it is adopted if possible. */
  deliverAgain(id: string): void {
    this.#committed.delete(id)
    this.#returning.add(id)
  }

  /** Control has recorded the commit of the segment. Call it before the segment is removed. */
  markCommitted(id: string): void {
    this.#committed.add(id)
  }

  /** Why the last scan failed, for all endpoints; null if it did not. */
  get problem(): string | null {
    return this.#problem
  }

  /** The epoch of the configuration when the scan behind `lag` began; -1 before the first. */
  get scannedEpoch(): number {
    return this.#scannedEpoch
  }

  /** All that was acknowledged before is in `lag` (epoch ms), but for rows that say otherwise. Undefined before the first scan. */
  get countedAt(): number | undefined {
    return this.#scannedAt === undefined
      ? undefined
      : this.#scanned
          .filter(({ countedAt }) => countedAt === undefined)
          .reduce((least, { logName }) => Math.min(least, this.#records.countedAt(logName) ?? least), this.#scannedAt)
  }

  /** Makes the next scan earlier, because the configuration changed. */
  scanSoon(): void {
    this.#sealed.abort()
  }

  /** Returns a row for each log that the last scan found something of, and for each endpoint that drained when that scan began. */
  lag(): readonly EndpointLag[] {
    const { endpoints, reportingBlockedBy } = this.#options
    return this.#scanned.map((scanned) => {
      const queue = this.#queues.get(scanned.logName)
      const block = queue?.block ?? null
      const { countedAt } = scanned
      return toLag(scanned, {
        countedAt: countedAt && Math.min(countedAt, this.#records.countedAt(scanned.logName) ?? countedAt),
        isOwned: endpoints.epoch < 0 || endpoints.find(scanned.logName) !== undefined,
        blockedBy: block?.reason ?? reportingBlockedBy(scanned.logName),
        failingView: block?.failingView ?? null,
        oldestSealedAt: queue?.oldestSealedAt ?? null,
        recordsOf: (segment) => this.#records.of(segment),
      })
    })
  }

  async #scanRepeatedly(): Promise<void> {
    const { clock, logger } = this.#options
    while (!this.#aborting.signal.aborted) {
      const startedAt = clock.monotonic()
      this.#takeHints()
      try {
        await this.#scan()
        if (this.#problem !== null) logger.notice('segment scan restored')
        this.#problem = null
      } catch (error) {
        const problem = `the segments on this node cannot be listed (${errorCode(error) ?? errorMessage(error)})`
        // Scans are frequent, so an outage is logged once.
        if (problem !== this.#problem) logger.error({ err: error }, 'segment scan failed; retrying')
        this.#problem = problem
      }
      if (this.#stopping && this.#queues.values().every((queue) => queue.isDoneOrStuck())) return
      await this.#rest(clock.monotonic() - startedAt)
    }
  }

  async #rest(scanMs: number): Promise<void> {
    const { clock } = this.#options
    const leastMs = Math.min(scanIntervalMsMax, Math.max(hintedScanIntervalMs, scanMs * scanRestFactor))
    const ended = new AbortController()
    this.#endRest = () => ended.abort()
    const stop = AbortSignal.any([ended.signal, this.#aborting.signal])
    if (leastMs > scanIntervalMs) return await this.#readHintedLogsFor(leastMs, stop)
    await sleep(clock, leastMs, stop)
    await sleep(clock, scanIntervalMs - leastMs, AbortSignal.any([stop, this.#sealed.signal]))
  }

  /** For that long, reads the logs that the watch reports. */
  async #readHintedLogsFor(ms: number, stop: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const until = clock.monotonic() + ms
    const leftMs = () => Math.max(0, until - clock.monotonic())
    while (leftMs() > 0 && !stop.aborted) {
      await sleep(clock, leftMs(), AbortSignal.any([stop, this.#sealed.signal]))
      const startedAt = clock.monotonic()
      await this.#readHintedLogs(this.#takeHints(), stop)
      const restMs = Math.max(hintedScanIntervalMs, (clock.monotonic() - startedAt) * hintRestFactor)
      await sleep(clock, Math.min(leftMs(), restMs), stop)
    }
  }

  /** A log that cannot be read, or a problem of all, is reported by the next scan. */
  async #readHintedLogs(logNames: ReadonlySet<string>, stop: AbortSignal): Promise<void> {
    if (logNames.size === 0) return
    const listings: LogListing[] = []
    for (const logName of logNames) {
      const listing = await this.#options.segments.readLog(logName).catch(() => undefined)
      if (listing !== undefined) listings.push(listing)
      if (stop.aborted) return
    }
    const parked = await this.#options.parked.read().catch(() => undefined)
    if (parked === undefined) return
    for (const listing of listings) {
      const ofLog = this.#identify(listing.segments)
      this.#returning.updateLog(listing.logName, ofLog)
      await this.#queueWaiting(listing, ofLog, parked)
    }
  }

  #hint(logName: string | null): void {
    if (logName !== null) this.#hinted.add(logName)
    this.#sealed.abort()
  }

  #takeHints(): ReadonlySet<string> {
    const hinted = this.#hinted
    this.#hinted = new Set()
    this.#sealed = new AbortController()
    return hinted
  }

  async #scan(): Promise<void> {
    const { segments, endpoints, isReported, clock } = this.#options
    const { epoch } = endpoints
    const beganAt = clock.now()
    const forgotten = new Set(this.#committed.values().filter((id) => !isReported(id)))
    const draining = endpoints.listDraining()
    const listed = new Map<string, LogListing>()
    const failed = new Map<string, unknown>()
    await inParallel(logsParallel, await segments.logNames(), async (logName) => {
      try {
        listed.set(logName, await segments.readLog(logName))
      } catch (error) {
        // Other logs are delivered. The queue of this one keeps what the last scan found.
        failed.set(logName, error)
      }
    })
    // Read after the listing: a delivery that ended meanwhile may have parked its segment.
    const parked = await this.#options.parked.read()
    const found = new Map([...listed].map(([logName, listing]) => [logName, this.#identify(listing.segments)]))
    const present = this.#returning.update(found)
    for (const id of this.#committed) {
      // It was removed before this scan began, so it came back.
      if (present.has(id) && forgotten.has(id)) this.deliverAgain(id)
      else if (!present.has(id) && !isReported(id)) this.#committed.delete(id)
    }

    const scanned: ScannedLog[] = [...failed].map(([logName, error]) =>
      unreadableLog(logName, errorMessage(error), this.#lastRead.get(logName)),
    )
    await inParallel(logsParallel, listed, async ([logName, listing]) => {
      const read = await this.#queueWaiting(listing, found.get(logName) ?? [], parked)
      scanned.push(read)
      this.#lastRead.set(logName, { ...read, countedAt: beganAt })
    })
    for (const logName of this.#queues.keys()) {
      if (!listed.has(logName) && !failed.has(logName)) await this.#update(logName, [], undefined)
    }
    const drained = draining.filter((id) => !listed.has(id) && !failed.has(id)).map((id) => missingLog(id))
    for (const logName of this.#lastRead.keys()) if (!listed.has(logName) && !failed.has(logName)) this.#lastRead.delete(logName)
    this.#counting = this.#records.update(scanned, beganAt)
    const kept = scanned.filter((each) => !isEmpty(each) || draining.includes(each.logName))
    this.#scanned = [...kept.sort((a, b) => (a.logName < b.logName ? -1 : 1)), ...drained]
    this.#scannedEpoch = epoch
    this.#scannedAt = beganAt
  }

  /** Queues the segments of one log that wait for their delivery. `parked` was read after the log. */
  async #queueWaiting(
    listing: LogListing,
    ofLog: readonly QueuedSegment[],
    parked: ReadonlyMap<string, Parked>,
  ): Promise<ScannedLog> {
    const { isReported } = this.#options
    const isUndelivered = ({ id, state }: QueuedSegment) => state === 'sealed' && !this.#committed.has(id) && !isReported(id)
    const undelivered = ofLog.filter(isUndelivered)
    const waiting = sealedBeforeOpen(ofLog).filter((segment) => isUndelivered(segment) && !parked.has(segment.id))
    // A segment counts as behind until control has recorded it, even if it is in the bucket.
    const oldest = ofLog.find((segment) => isUndelivered(segment) || isReported(segment.id))
    await this.#update(listing.logName, waiting, oldest)
    return scannedLog(
      listing,
      undelivered.flatMap(({ id }) => parked.get(id) ?? []),
    )
  }

  #identify(ofLog: readonly Segment[]): readonly QueuedSegment[] {
    return ofLog.map((segment) => ({ ...segment, id: commitId(this.#options.nodeId, segment.incarnation, segment.seq) }))
  }

  async #update(logName: string, waiting: readonly QueuedSegment[], oldest: QueuedSegment | undefined): Promise<void> {
    const known = this.#queues.get(logName)
    if (oldest === undefined && known?.isIdle !== false) this.#queues.delete(logName)
    else await this.#queue(logName).update(waiting, oldest)
  }

  #queue(logName: string): LogQueue {
    const known = this.#queues.get(logName)
    if (known !== undefined) return known
    const { segments, clock } = this.#options
    const queue = new LogQueue({
      logName,
      segments,
      deliver: (segment, run) => this.#deliver(segment, run),
      onEnded: () => {
        if (this.#stopping) this.#endRest()
      },
      signal: this.#aborting.signal,
      clock,
    })
    this.#queues.set(logName, queue)
    return queue
  }

  /** Delivers a segment until it needs no further delivery. An error that no stage expects costs neither the process nor the order of its log. */
  async #deliver(segment: QueuedSegment, run: Pick<DeliveryRun, 'turn' | 'report' | 'signal'>): Promise<void> {
    const { fence, deliver, isReported, clock, random, logger } = this.#options
    const { id, logName, seq, incarnation } = segment
    const delay = new Backoff({ delayMsMin: deliveryLimits.retryDelayMsMin, delayMsMax: deliveryLimits.retryDelayMsMax, random })
    let outcome: DeliveryOutcome = 'again'
    // An attempt may have put the marker although it failed, and a commit never changes.
    for (let mayBeCommitted = this.#returning.has(id); outcome === 'again'; mayBeCommitted = true) {
      try {
        run.report(fence.reason ?? null)
        await fence.whenOpen(run.signal)
        outcome = await deliver({ segment, mayBeCommitted, ...run })
      } catch (error) {
        run.signal.throwIfAborted()
        run.report(errorMessage(error))
        logger.error({ err: error, log: logName, seq }, 'delivery failed unexpectedly; retrying')
        await sleep(clock, delay.next(), run.signal)
        run.signal.throwIfAborted()
      }
    }
    if (outcome === 'committed') this.#committed.add(id)
    if (outcome !== 'gone' || this.#committed.has(id) || isReported(id)) return
    logger.warn({ log: logName, seq, incarnation }, 'segment was removed or renamed before its delivery')
  }
}

/** Returns the sealed segments before the first open one: a later segment must not be delivered before one that is still being sealed. */
function sealedBeforeOpen<Found extends Segment>(ofLog: readonly Found[]): readonly Found[] {
  const firstOpen = ofLog.findIndex(({ state }) => state === 'open')
  return (firstOpen < 0 ? ofLog : ofLog.slice(0, firstOpen)).filter(({ state }) => state === 'sealed')
}
