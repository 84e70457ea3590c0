import { type Clock, isoTimestamp, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { commitId } from '#model/commit.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import { listParked, type Parked } from './crash-ledger.ts'
import type { DeliveryRun } from './delivery-run.ts'
import type { Segment, SegmentRef, SegmentSource } from './segments.ts'

/** Segments of one log that may be in work at a time: one uploads and waits for its turn while others are converted. */
const inWorkPerLogMax = 3
const scanIntervalMs = 250
/** The same when a watch reports sealed segments. */
const hintedScanIntervalMs = 20
/** With very many segments a scan takes its time: then it rests this many times as long, up to a bound. */
const scanRestFactor = 9
const scanIntervalMsMax = 10_000
/** A log that has been blocked for this long is not waited for at the end. */
const stuckAfterMs = 3_000

export type PipelineOptions = {
  readonly nodeId: string
  readonly segments: SegmentSource
  readonly suspectsDirectory: string
  readonly deliver: (run: DeliveryRun) => Promise<'committed' | 'parked'>
  /** Whether a commit is on its way to control. */
  readonly isReported: (id: string) => boolean
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
}

type Log = {
  /** Ids in work, with what each of them waits for and since when. */
  readonly inWork: Map<string, { readonly reason: string; readonly sinceMs: number } | null>
  /** Settles when everything that was begun has ended. */
  tail: Promise<unknown>
  /** Sealed segments that are not committed, oldest first, as of the last scan. */
  waiting: readonly Segment[]
  /** When the first of them was sealed, once read from its footer. */
  oldest: { readonly id: string; readonly sealedAt: string | null } | undefined
  parked: readonly Parked[]
}

/**
 * Finds sealed segments and sees them through.
 *
 * Owns: what is in work, the order of turns within a log, the lag. Does not own: the steps of one delivery.
 * Law: turns are taken in order of seq within a log, and a segment is in work at most once at a time.
 */
export class Pipeline implements Service {
  readonly name = 'pipeline'
  readonly #options: PipelineOptions
  readonly #logs = new Map<string, Log>()
  /** Given away, and perhaps not yet removed from disk. */
  readonly #committed = new Set<string>()
  readonly #aborting = new AbortController()
  #stopping = false
  #scanning: Promise<void> = Promise.resolve()
  /** Segments that lay there at the start and are not begun. Undefined until the first scan. */
  #recovered: Set<string> | undefined
  #wake: () => void = () => undefined
  #unwatch: () => void = () => undefined
  /** Aborts when segments were sealed since the last scan began. */
  #hint = new AbortController()

  constructor(options: PipelineOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { segments, logger } = this.#options
    try {
      this.#unwatch = await segments.watch(() => this.#hint.abort())
    } catch (error) {
      logger.warn({ err: error, scanIntervalMs }, 'segments cannot be watched; sealed ones are found by scanning')
    }
    this.#scanning = this.#scanAll()
  }

  /** Delivers what it can until nothing is left, nothing moves any more, or the signal aborts. The rest stays on disk. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping = true
    signal.addEventListener('abort', () => this.#aborting.abort(), { once: true })
    if (signal.aborted) this.#aborting.abort()
    this.#wake()
    await this.#scanning
    this.#unwatch()
    this.#aborting.abort()
    await Promise.all([...this.#logs.values()].map(({ tail }) => tail))
  }

  /** How far behind each log is. */
  lag(): readonly EndpointLag[] {
    return [...this.#logs].flatMap(([logName, log]) => {
      const parked = log.parked[0]
      if (log.waiting.length === 0 && parked === undefined) return []
      const blockedBy = log.inWork.values().find((block) => block !== null)?.reason ?? null
      return {
        endpoint_id: logName,
        undelivered_segments: log.waiting.length + log.parked.length,
        undelivered_bytes: log.waiting.reduce((sum, { bytes }) => sum + bytes, 0),
        oldest_sealed_at: log.oldest?.sealedAt ?? null,
        blocked_by: blockedBy ?? (parked === undefined ? null : `${log.parked.length} segments are parked: ${parked.reason}`),
      }
    })
  }

  async #scanAll(): Promise<void> {
    const { clock, logger } = this.#options
    while (!this.#aborting.signal.aborted) {
      const startedAt = clock.monotonic()
      this.#hint = new AbortController()
      try {
        await this.#scan()
      } catch (error) {
        logger.error({ reason: errorMessage(error) }, 'the WAL directory could not be read')
      }
      if (this.#stopping && this.#nothingMoves()) return
      const woken = new AbortController()
      this.#wake = () => woken.abort()
      const restMs = (clock.monotonic() - startedAt) * scanRestFactor
      const leastMs = Math.min(scanIntervalMsMax, Math.max(hintedScanIntervalMs, restMs))
      const ended = AbortSignal.any([woken.signal, this.#aborting.signal])
      await sleep(clock, leastMs, ended)
      if (leastMs < scanIntervalMs) await sleep(clock, scanIntervalMs - leastMs, AbortSignal.any([ended, this.#hint.signal]))
    }
  }

  #nothingMoves(): boolean {
    const now = this.#options.clock.monotonic()
    return this.#logs.values().every(({ inWork, waiting }) => {
      if (inWork.size === 0) return waiting.length === 0
      return inWork.values().some((block) => block !== null && now - block.sinceMs > stuckAfterMs)
    })
  }

  async #scan(): Promise<void> {
    const { files, suspectsDirectory, isReported } = this.#options
    const parked = await listParked(files, suspectsDirectory)
    const segments = await this.#options.segments.list()
    const idOf = (segment: SegmentRef) => this.#id(segment)
    const present = new Set(segments.map(idOf))
    this.#recovered ??= new Set(present)
    for (const id of this.#committed) if (!present.has(id) && !isReported(id)) this.#committed.delete(id)

    const byLog = Map.groupBy(segments, ({ logName }) => logName)
    for (const [logName, log] of this.#logs) if (!byLog.has(logName) && log.inWork.size === 0) this.#logs.delete(logName)
    for (const [logName, all] of byLog) {
      const log = this.#log(logName)
      // A segment that is being sealed goes before those that were sealed after it.
      const firstOpen = all.findIndex(({ state }) => state === 'open')
      const sealed = (firstOpen < 0 ? all : all.slice(0, firstOpen)).filter(({ state }) => state === 'sealed')
      const open = sealed.filter((segment) => !this.#committed.has(idOf(segment)) && !isReported(idOf(segment)))
      log.parked = open.flatMap((segment) => parked.get(idOf(segment)) ?? [])
      log.waiting = open.filter((segment) => !parked.has(idOf(segment)))
      const [oldest] = log.waiting
      if (oldest === undefined) log.oldest = undefined
      else if (idOf(oldest) !== log.oldest?.id) log.oldest = { id: idOf(oldest), sealedAt: await this.#sealedAt(oldest) }
      this.#fill(log)
    }
  }

  /** Begins what there is room for. */
  #fill(log: Log): void {
    for (const segment of log.waiting) {
      if (log.inWork.size >= inWorkPerLogMax) break
      const id = this.#id(segment)
      if (!log.inWork.has(id)) this.#begin(log, segment, id)
    }
  }

  #begin(log: Log, segment: SegmentRef, id: string): void {
    const { clock } = this.#options
    const turn = log.tail
    log.inWork.set(id, null)
    const recovered = this.#recovered?.delete(id) === true
    const end = this.#options
      .deliver({
        segment,
        recovered,
        turn,
        report: (reason) => {
          const sinceMs = log.inWork.get(id)?.sinceMs ?? clock.monotonic()
          log.inWork.set(id, reason === null ? null : { reason, sinceMs })
        },
        signal: this.#aborting.signal,
      })
      .then(
        (outcome) => {
          if (outcome === 'committed') this.#committed.add(id)
        },
        (error: unknown) => {
          // Only an abort ends a delivery early; anything else is a broken invariant of this process.
          if (!this.#aborting.signal.aborted) throw error
        },
      )
      .finally(() => {
        log.inWork.delete(id)
        log.waiting = log.waiting.filter((other) => this.#id(other) !== id)
        // The next ones are known; the directory need not be read for each.
        if (!this.#aborting.signal.aborted) this.#fill(log)
        if (this.#stopping) this.#wake()
      })
    // Without their values: each would hold on to all that came before it.
    log.tail = Promise.all([turn, end]).then(() => undefined)
  }

  /** Null where the footer can't be read: then the delivery says why. */
  async #sealedAt(segment: SegmentRef): Promise<string | null> {
    try {
      const reader = await this.#options.segments.open(segment)
      await reader.close()
      return isoTimestamp(Math.floor(reader.footer.sealedAtMicros / 1000))
    } catch {
      return null
    }
  }

  #id({ incarnation, seq }: SegmentRef): string {
    return commitId(this.#options.nodeId, incarnation, seq)
  }

  #log(name: string): Log {
    const known = this.#logs.get(name)
    if (known !== undefined) return known
    const log: Log = { inWork: new Map(), tail: Promise.resolve(), waiting: [], oldest: undefined, parked: [] }
    this.#logs.set(name, log)
    return log
  }
}
