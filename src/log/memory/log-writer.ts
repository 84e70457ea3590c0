/**
 * Writes logs in memory, for tests of what stands on a log.
 *
 * Owns: the promises of an engine, in the simplest way. Does not own: storage that survives the process.
 * Law: nothing is stored before the next turn, so that a crash, a fence and a full storage find frames that wait, as on a disk.
 */
import { Buffer } from 'node:buffer'
import { assert } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import { Durations } from '#lib/durations.ts'
import type { Random } from '#lib/random.ts'
import type { Frame, FrameInput } from '../frame.ts'
import { LogError } from '../log-error.ts'
import type { Appended, BlockedLog, EndReason, LogHealth, LogHooks, LogSettings, LogUsage, LogWriter } from '../log-writer.ts'
import type { SegmentRef } from '../segment-source.ts'
import { frameBytes, frameChunks, type MemoryStorage, type StoredSegment } from './storage.ts'

export type MemoryLogWriterOptions = LogHooks & {
  readonly storage: MemoryStorage
  readonly clock: Clock
  readonly random: Random
  readonly waitingBytesMax?: number
}

type Waiting = {
  readonly frame: Frame
  readonly bytes: number
  /** The frame, if the observer wants to know of it. */
  readonly observed: readonly FrameInput[]
  readonly durable: PromiseWithResolvers<Appended>
}

type OpenLog = {
  settings: LogSettings
  readonly waiting: Waiting[]
  segment: StoredSegment | undefined
  /** Whether the segment is copied. */
  isCopied: boolean
  openedAtMs: number
  isDue: boolean
  cancelTimer: () => void
  /** Settles when all that waits is stored or rejected, and the segment that was due is sealed. */
  working: Promise<void> | undefined
}

const nothing = () => undefined

export class MemoryLogWriter implements LogWriter {
  readonly name = 'memory log'
  readonly usage: LogUsage
  readonly #options: MemoryLogWriterOptions
  readonly #generation: number
  readonly #logs = new Map<string, OpenLog>()
  readonly #ended = new Map<string, EndReason>()
  /** Also of logs that were removed. */
  readonly #highestSeqs = new Map<string, number>()
  #waitingBytes = 0
  /** Set from a frame that found no room until there is room for it. */
  #missingBytes = 0
  #isStopped = false

  constructor(options: MemoryLogWriterOptions) {
    this.#options = options
    this.#generation = options.storage.generation
    this.usage = this.#readUsage()
  }

  async start(): Promise<void> {
    const { storage, onUsage } = this.#options
    for (const [logName, { segments, highestSeq }] of storage.logs) {
      this.#highestSeqs.set(logName, highestSeq)
      onUsage?.(
        logName,
        segments.reduce((sum, { bytes }) => sum + bytes, 0),
      )
      for (const segment of segments) if (segment.state === 'open') await this.#recover(segment)
    }
    if (onUsage !== undefined) storage.onResized.add(onUsage)
  }

  configure(logName: string, settings: LogSettings): void {
    if (this.#isStopped || this.#ended.get(logName) === 'fenced') return
    this.#ended.delete(logName)
    const log = this.#logs.get(logName)
    if (log === undefined) {
      const fresh = { waiting: [], segment: undefined, isCopied: false, openedAtMs: 0 }
      this.#logs.set(logName, { settings, ...fresh, isDue: false, cancelTimer: nothing, working: undefined })
      return
    }
    const { segmentBytes, segmentMaxAgeMs } = log.settings
    log.settings = settings
    if (log.segment === undefined) return
    if (settings.segmentMaxAgeMs !== segmentMaxAgeMs) this.#setTimer(log)
    const isTooLarge = settings.segmentBytes < segmentBytes && log.segment.bytes >= settings.segmentBytes
    if (isTooLarge || log.isCopied !== (settings.isCopied ?? false)) this.#sealSoon(log)
  }

  append(logName: string, input: FrameInput): Promise<Appended> {
    const { observer, waitingBytesMax = Number.POSITIVE_INFINITY } = this.#options
    if (this.#isStopped) return Promise.reject(new LogError('stopping', 'the log is being closed'))
    const log = this.#logs.get(logName)
    if (log === undefined) {
      assert(this.#ended.has(logName) || this.#highestSeqs.has(logName), `the log ${logName} was never configured`)
      return Promise.reject(new LogError('stopping', 'the log takes no more frames'))
    }
    const frame = { ...input, envelope: Buffer.from(input.envelope), payload: Buffer.concat(input.payload) }
    const bytes = frameBytes(frame)
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > waitingBytesMax)
      return Promise.reject(new LogError('overloaded', `more than ${waitingBytesMax} bytes wait to be stored`))
    const durable = Promise.withResolvers<Appended>()
    log.waiting.push({ frame, bytes, durable, observed: observer?.observes(input) === true ? [input] : [] })
    this.#waitingBytes += bytes
    void this.#work(logName, log)
    return durable.promise
  }

  whenRecovered(): Promise<boolean> {
    return Promise.resolve(true)
  }

  async end(logName: string, reason: EndReason): Promise<void> {
    if (this.#isStopped || this.#ended.get(logName) === 'fenced') return
    this.#ended.set(logName, reason)
    const log = this.#logs.get(logName)
    this.#logs.delete(logName)
    if (log !== undefined) {
      if (reason === 'fenced') this.#reject(log, fencedError())
      await this.#close(logName, log)
    }
    if (this.#ended.get(logName) !== reason) return
    const { storage } = this.#options
    if (reason === 'closed') storage.log(logName).isClosed = true
    if (reason === 'unowned') storage.log(logName).isUnowned = true
    storage.forgetIfEmpty(logName)
  }

  endUnowned(owned: ReadonlySet<string>): void {
    for (const logName of new Set([...this.#logs.keys(), ...this.#ended.keys(), ...this.#options.storage.logs.keys()]))
      if (!owned.has(logName)) void this.end(logName, 'unowned')
  }

  health(): LogHealth {
    const { storage } = this.#options
    if (storage.bytes + this.#missingBytes <= storage.capacityBytes) this.#missingBytes = 0
    return this.#missingBytes === 0
      ? { healthy: true, reasons: [] }
      : { healthy: false, reasons: ['disk_full: the memory of the log is full'] }
  }

  blocked(): readonly BlockedLog[] {
    return [...this.#ended].flatMap(([logName, reason]) =>
      reason === 'fenced' ? [{ logName, reason: 'new data is refused: another writer has taken over the log' }] : [],
    )
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all([...this.#logs].map(([logName, log]) => this.#close(logName, log)))
  }

  async #close(logName: string, log: OpenLog): Promise<void> {
    log.isDue = true
    await this.#work(logName, log)
  }

  #sealSoon(log: OpenLog): void {
    log.isDue = true
    if (log.segment !== undefined) void this.#work(log.segment.logName, log)
  }

  #setTimer(log: OpenLog): void {
    const { clock } = this.#options
    log.cancelTimer()
    const leftMs = log.settings.segmentMaxAgeMs - (clock.monotonic() - log.openedAtMs)
    log.cancelTimer = clock.setTimer(() => this.#sealSoon(log), Math.max(0, leftMs))
  }

  #work(logName: string, log: OpenLog): Promise<void> {
    log.working ??= this.#workOnce(logName, log)
    return log.working
  }

  async #workOnce(logName: string, log: OpenLog): Promise<void> {
    do {
      await new Promise<void>((resolve) => this.#options.clock.nextTurn(resolve))
      while (log.waiting.length > 0) await this.#store(logName, log)
      if (log.isDue || (log.segment?.bytes ?? 0) >= log.settings.segmentBytes) await this.#seal(log)
    } while (log.waiting.length > 0 || log.isDue)
    log.working = undefined
  }

  /** Stores frames that fit into one segment, together. */
  async #store(logName: string, log: OpenLog): Promise<void> {
    const { storage, clock, observer, mayAcknowledge, copy } = this.#options
    const bytesMax = log.settings.segmentBytes
    let bytes = log.waiting[0]?.bytes ?? 0
    let count = 1
    for (const next of log.waiting.slice(1)) {
      if (bytes + next.bytes > bytesMax) break
      bytes += next.bytes
      count += 1
    }
    const fits = log.segment === undefined || log.segment.bytes + bytes <= bytesMax
    if (!fits || log.isCopied !== (log.settings.isCopied ?? false)) await this.#seal(log)
    // A fence may have rejected them meanwhile.
    const group = log.waiting.splice(0, count)
    if (group.length === 0) return
    this.#waitingBytes -= bytes
    const failure = this.#failureOf(bytes)
    if (failure !== undefined) {
      for (const { durable } of group) durable.reject(failure)
      return
    }
    const startedAtMs = clock.monotonic()
    const segment = log.segment ?? this.#open(logName, log)
    const at = segment.bytes
    for (const { frame } of group) segment.frames.push(frame)
    segment.bytes += bytes
    storage.resize(logName, bytes)
    const observed = group.flatMap((waiting) => waiting.observed)
    if (observed.length > 0) observer?.appended(segment.seq, observed)
    const sync = { startedAtMs, endedAtMs: clock.monotonic() }
    this.usage.syncs.observe(sync.endedAtMs - startedAtMs)
    const copied = log.isCopied
      ? copy?.({ ...refOf(segment), at, chunks: group.flatMap(({ frame }) => frameChunks(frame)) })
      : undefined
    // The callers may be rejected for another reason.
    copied?.catch(nothing)
    const wait = mayAcknowledge?.()
    if (wait !== undefined) await wait
    const isFenced = this.#ended.get(logName) === 'fenced'
    for (const { durable } of group)
      isFenced ? durable.reject(fencedError('unacknowledged')) : durable.resolve({ seq: segment.seq, sync, copied })
  }

  #failureOf(bytes: number): LogError | undefined {
    const { storage } = this.#options
    if (storage.generation !== this.#generation) return new LogError('io_error', 'the memory of the log is gone')
    if (storage.bytes + bytes <= storage.capacityBytes) return undefined
    this.#missingBytes = bytes
    return new LogError('disk_full', 'the memory of the log is full')
  }

  #open(logName: string, log: OpenLog): StoredSegment {
    const { storage, clock, random } = this.#options
    const stored = storage.log(logName)
    const known = Math.max(stored.highestSeq, this.#highestSeqs.get(logName) ?? -1)
    const seq = Math.max(known, log.settings.seqAbove) + 1
    const incarnation = random.bytes(5).toString('hex')
    const facts = { bytes: 0, sealedAtMicros: 0, damagedRecords: 0, damaged: new Set<Frame>() }
    const segment: StoredSegment = { logName, seq, incarnation, state: 'open', frames: [], ...facts }
    Object.assign(stored, { highestSeq: seq, isClosed: false, isUnowned: false })
    this.#highestSeqs.set(logName, seq)
    stored.segments.push(segment)
    log.segment = segment
    log.isCopied = log.settings.isCopied ?? false
    log.openedAtMs = clock.monotonic()
    this.#setTimer(log)
    return segment
  }

  async #seal(log: OpenLog): Promise<void> {
    const { segment } = log
    log.isDue = false
    log.cancelTimer()
    if (segment === undefined) return
    await this.#options.observer?.beforeSeal()
    log.segment = undefined
    this.#sealed(segment)
  }

  async #recover(segment: StoredSegment): Promise<void> {
    const { observer } = this.#options
    const recovering = observer?.recovering(segment.logName, segment.seq)
    for (const frame of segment.frames) recovering?.recovered(frame)
    await observer?.beforeSeal()
    this.#sealed(segment)
  }

  #sealed(segment: StoredSegment): void {
    const { storage, clock, onSealed } = this.#options
    if (storage.generation !== this.#generation) return
    segment.state = 'sealed'
    segment.sealedAtMicros = clock.now() * 1_000
    for (const listener of storage.onSealed) listener(segment.logName)
    onSealed?.(segment)
  }

  #reject(log: OpenLog, error: LogError): void {
    for (const { durable, bytes } of log.waiting.splice(0)) {
      this.#waitingBytes -= bytes
      durable.reject(error)
    }
  }

  #readUsage(): LogUsage {
    const { storage, clock } = this.#options
    const segments = () => [...this.#logs.values()].flatMap(({ segment }) => segment ?? [])
    const oldestMs = () =>
      Math.min(...[...this.#logs.values()].flatMap((log) => (log.segment === undefined ? [] : log.openedAtMs)))
    const waitingBytes = () => this.#waitingBytes
    return {
      syncs: new Durations([]),
      salvagedSegments: 0,
      lost: { segments: 0, records: 0 },
      get bytes() {
        return storage.bytes
      },
      get openBytes() {
        return segments().reduce((sum, { bytes }) => sum + bytes, 0)
      },
      get oldestOpenMs() {
        return Math.max(0, clock.monotonic() - oldestMs())
      },
      get waitingBytes() {
        return waitingBytes()
      },
    }
  }
}

function refOf({ logName, seq, incarnation }: StoredSegment): SegmentRef {
  return { logName, seq, incarnation }
}

function fencedError(reason: 'stopping' | 'unacknowledged' = 'stopping'): LogError {
  return new LogError(reason, 'another writer has taken over the log')
}
