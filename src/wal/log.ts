/**
 * One log: accepts frames in order and produces sealed segments.
 *
 * Owns: the queue, the group commit, rotation by size and by age. Does not own: the bytes of a segment (segment-writer.ts), and files that
 * it had to abandon (log-recovery.ts).
 * Law: one group is written at a time; while its fdatasync runs, the next one gathers. All frames of a group become durable or fail
 * together.
 */
import { join } from 'node:path'
import { InvariantError } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, type Files, type OpenFile } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { SegmentFile } from './directory.ts'
import { encodedBytes, type FrameInput, type Salt } from './frame.ts'
import { writeHighWater } from './high-water.ts'
import type { WalLimits } from './limits.ts'
import { type Orphan, poison } from './orphan.ts'
import { FOOTER_BYTES, HEADER_BYTES, type SegmentIdentity, segmentName } from './segment-file.ts'
import { SegmentWriter, UnlinkedError } from './segment-writer.ts'
import { toWalError, WalError } from './wal-error.ts'

export type LogSettings = {
  /** A segment is sealed before it grows beyond this. Only a segment of a single group may be larger. */
  readonly segmentBytes: number
  /** A segment is sealed when its first frame is this old. */
  readonly segmentMaxAgeMs: number
  /** New segments get a seq above this, even if the disk has no trace of it; -1 for none. */
  readonly seqAbove: number
}

export type Appended = { readonly seq: number }

type LogEvents = {
  readonly onGrown: (path: string, bytes: number) => void
  readonly onSealed: (segment: SegmentFile, openPath: string) => void
  readonly onOrphan: (orphan: Orphan) => void
  /** A segment whose file was removed while it was in use was written again. */
  readonly onRescued: () => void
  /** Called after every group, with its failure or with undefined if it became durable. */
  readonly onOutcome: (failure: WalError | undefined) => void
}

export type LogOptions = LogEvents & {
  readonly logName: string
  readonly directory: string
  readonly incarnation: string
  /** Returns the highest known seq, -1 for none. Called before the first segment; throws while the disk cannot be read. */
  readonly lastSeq: () => Promise<number>
  /** Called for each segment; throws while the disk cannot be read or written. */
  readonly saltOf: (segment: SegmentIdentity) => Promise<Salt>
  readonly settings: LogSettings
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: WalLimits
  /** Bytes waiting for the disk, over all logs. */
  readonly waiting: { bytes: number }
}

class Group {
  readonly frames: FrameInput[] = []
  readonly durable = Promise.withResolvers<Appended>()
  bytes = 0
}

export class Log {
  readonly #options: LogOptions
  readonly #groups: Group[] = []
  readonly #stopped = Promise.withResolvers<void>()
  #settings: LogSettings
  #lastSeq: number | undefined
  #segment: { readonly writer: SegmentWriter; readonly openedAtMs: number; cancelTimer: () => void } | undefined
  #problem: string | undefined
  #isSealDue = false
  #isWorking = false
  #isStopping = false
  #sealsAtStop = false

  constructor(options: LogOptions) {
    this.#options = options
    this.#settings = options.settings
  }

  /** The highest seq that this log has used, -1 for none. */
  get lastSeq(): number {
    return this.#lastSeq ?? -1
  }

  /** Why the log cannot go on, and what to do; undefined if it can. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Also seals the open segment if it is too old or too large for the new settings. */
  configure(settings: LogSettings): void {
    const { clock } = this.#options
    const { segmentBytes, segmentMaxAgeMs } = this.#settings
    this.#settings = settings
    const open = this.#segment
    if (open === undefined) return
    if (settings.segmentMaxAgeMs !== segmentMaxAgeMs) {
      open.cancelTimer()
      const ageMs = clock.monotonic() - open.openedAtMs
      open.cancelTimer = clock.setTimer(() => this.#onAge(), Math.max(0, settings.segmentMaxAgeMs - ageMs))
    }
    if (settings.segmentBytes < segmentBytes && open.writer.durableBytes + FOOTER_BYTES >= settings.segmentBytes) this.#onAge()
  }

  /** Resolves when the frame is durable. All frames of a group share one promise. */
  append(frame: FrameInput): Promise<Appended> {
    const { limits, waiting } = this.#options
    const bytes = encodedBytes(frame)
    if (this.#isStopping) return Promise.reject(new WalError('stopping', 'the log is being closed'))
    if (waiting.bytes > 0 && waiting.bytes + bytes > limits.waitingBytesMax) {
      return Promise.reject(new WalError('overloaded', `more than ${limits.waitingBytesMax} bytes wait for the disk`))
    }
    let group = this.#groups.at(-1)
    if (group === undefined || group.bytes + bytes > this.#groupBytesMax() || group.frames.length >= limits.groupFramesMax) {
      group = new Group()
      this.#groups.push(group)
    }
    group.frames.push(frame)
    group.bytes += bytes
    waiting.bytes += bytes
    this.#scheduleWork()
    return group.durable.promise
  }

  /** Commits what was accepted and, unless the signal has aborted, seals. Never throws: an unsealed segment is recovered later. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#isStopping = true
    this.#sealsAtStop = !signal.aborted
    this.#scheduleWork()
    const aborted = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => aborted.resolve(), { once: true })
    await Promise.race(signal.aborted ? [this.#stopped.promise] : [this.#stopped.promise, aborted.promise])
    if (this.#segment?.writer.state === 'unlinked')
      this.#options.logger.fatal({ problem: this.#problem }, 'acknowledged records lost')
  }

  #groupBytesMax(): number {
    return Math.min(this.#options.limits.groupBytesMax, this.#settings.segmentBytes - HEADER_BYTES - FOOTER_BYTES)
  }

  /** Starts in the check phase, so that everything else that arrives in this turn of the event loop joins the first group. */
  #scheduleWork(): void {
    if (this.#isWorking) return
    this.#isWorking = true
    setImmediate(() => void this.#work())
  }

  async #work(): Promise<void> {
    for (;;) {
      const group = this.#groups.shift()
      if (group !== undefined) await this.#commit(group)
      if (this.#isSealDue) await this.#sealWhenDue()
      if (group === undefined && this.#groups.length === 0 && !this.#isSealDue) break
    }
    this.#isWorking = false
    if (!this.#isStopping) return
    if (this.#sealsAtStop) {
      await this.#sealWhenDue()
      // Its records exist only in this process. The timer tries again, until the deadline.
      if (this.#segment?.writer.state === 'unlinked') return
    }
    await this.#abandonSegment()
    this.#stopped.resolve()
  }

  async #commit(group: Group): Promise<void> {
    const { waiting, onOutcome } = this.#options
    try {
      const writer = await this.#writerFor(group.bytes)
      await this.#append(writer, group.frames)
      onOutcome(undefined)
      group.durable.resolve({ seq: writer.header.seq })
      if (writer.state === 'open' && writer.durableBytes + FOOTER_BYTES >= this.#settings.segmentBytes) this.#isSealDue = true
    } catch (error) {
      if (error instanceof InvariantError) throw error
      const failure = toWalError(error)
      onOutcome(failure)
      group.durable.reject(failure)
      await this.#leaveFailedSegment()
    } finally {
      waiting.bytes -= group.bytes
    }
  }

  async #append(writer: SegmentWriter, frames: readonly FrameInput[]): Promise<void> {
    try {
      await writer.append(frames)
      this.#options.onGrown(writer.path, writer.durableBytes)
    } catch (error) {
      if (!(error instanceof UnlinkedError)) throw error
      await this.#rescue()
    }
  }

  async #leaveFailedSegment(): Promise<void> {
    if (this.#segment === undefined) return
    const { state, frames } = this.#segment.writer
    if (state === 'unlinked') this.#sealLater()
    else if (state !== 'open' || frames === 0) await this.#abandonSegment()
  }

  #sealLater(): void {
    const { clock, limits } = this.#options
    if (this.#segment === undefined) return
    this.#segment.cancelTimer()
    this.#segment.cancelTimer = clock.setTimer(() => this.#onAge(), limits.upkeepIntervalMs)
  }

  /** Returns the writer of the open segment, or of a new one if the group does not fit. */
  async #writerFor(bytes: number): Promise<SegmentWriter> {
    const open = this.#segment
    if (open !== undefined) {
      const fits = open.writer.durableBytes + bytes + FOOTER_BYTES <= this.#settings.segmentBytes
      if (fits && open.writer.state === 'open') return open.writer
      try {
        await this.#seal()
      } catch (error) {
        // A full disk leaves the segment open. If it was abandoned instead, the next segment shows whether the disk still works.
        if (this.#segment !== undefined) throw error
      }
    }
    return await this.#openSegment()
  }

  async #openSegment(): Promise<SegmentWriter> {
    const { logName, directory, incarnation, files, clock, limits } = this.#options
    this.#lastSeq ??= await this.#options.lastSeq()
    const seq = Math.max(this.#lastSeq, this.#settings.seqAbove) + 1
    const salt = await this.#options.saltOf({ logName, incarnation, seq })
    const header = { logName, incarnation, seq, createdAtMicros: clock.now() * 1_000, salt }
    const path = join(directory, segmentName(header, 'open'))
    const file = await createWithDirectory(files, directory, path)
    try {
      await writeHighWater(files, directory, seq)
    } catch (error) {
      // Nothing was written under this seq, so it may be used again. If the file stays, creating it again would always fail.
      await file.close().catch(() => undefined)
      await files.remove(path).catch(() => {
        this.#lastSeq = seq
        this.#options.onOrphan({ ...header, path, durableBytes: 0, isPoisoned: false })
      })
      throw error
    }
    this.#lastSeq = seq
    const writer = new SegmentWriter({ files, file, header, copiedPayloadBytesMax: limits.copiedPayloadBytesMax })
    const cancelTimer = clock.setTimer(() => this.#onAge(), this.#settings.segmentMaxAgeMs)
    this.#segment = { writer, openedAtMs: clock.monotonic(), cancelTimer }
    return writer
  }

  #onAge(): void {
    this.#isSealDue = true
    this.#scheduleWork()
  }

  /** No caller waits for this seal. If it fails, the segment stays open or is abandoned, and nothing in it is lost. */
  async #sealWhenDue(): Promise<void> {
    this.#isSealDue = false
    const { onOutcome } = this.#options
    try {
      await this.#seal()
    } catch (error) {
      if (error instanceof InvariantError) throw error
      onOutcome(toWalError(error))
      this.#sealLater()
    }
  }

  async #seal(): Promise<void> {
    const { logName, directory, incarnation, clock, onSealed } = this.#options
    const segment = this.#segment
    if (segment === undefined) return
    const { writer, cancelTimer } = segment
    const { seq } = writer.header
    const path = join(directory, segmentName(writer.header, 'wal'))
    cancelTimer()
    try {
      if (writer.state === 'unlinked') return await this.#rescue()
      const bytes = await writer.seal(path, clock.now() * 1_000)
      this.#segment = undefined
      this.#isSealDue = false
      onSealed({ logName, incarnation, seq, path, bytes, state: 'sealed' }, writer.path)
    } catch (error) {
      if (error instanceof UnlinkedError) return await this.#rescue()
      if (writer.state !== 'open') await this.#leaveFailedSegment()
      throw error
    }
  }

  /** Writes a segment again that lost its file. Until that has worked, the log accepts nothing: later data would overtake it. */
  async #rescue(): Promise<void> {
    const { logName, directory, incarnation, files, clock, logger, onSealed, onOrphan, onRescued } = this.#options
    const segment = this.#segment
    if (segment === undefined) return
    const { writer } = segment
    const { seq } = writer.header
    const path = join(directory, segmentName(writer.header, 'wal'))
    let bytes: number
    try {
      bytes = await writer.rescue(path, clock.now() * 1_000)
    } catch (error) {
      const code = errorCode(error) ?? errorMessage(error)
      this.#problem = `segment ${logName}/${seq}-${incarnation} was removed while it was in use and cannot be written again (${code}): repair the disk, and do not stop ingest, which alone has its records`
      throw error
    }
    this.#problem = undefined
    segment.cancelTimer()
    this.#segment = undefined
    this.#isSealDue = false
    logger.error({ log: logName, seq, frames: writer.frames, path }, 'segment file removed while in use; records written again')
    onRescued()
    onSealed({ logName, incarnation, seq, path, bytes, state: 'sealed' }, writer.path)
    // Another file of this name would hold back delivery.
    const isReplaced = (await files.bytes(writer.path).catch(() => undefined)) !== undefined
    if (isReplaced) onOrphan({ logName, incarnation, seq, path: writer.path, isPoisoned: false })
  }

  /** Closes a segment that cannot be written to any more. It becomes an orphan, or is removed if it has no acknowledged frame. */
  async #abandonSegment(): Promise<void> {
    const { files, directory, onOrphan, logger } = this.#options
    const segment = this.#segment
    if (segment === undefined) return
    segment.cancelTimer()
    if (segment.writer.state === 'unlinked') return await this.#rescue().catch(() => undefined)
    this.#segment = undefined
    const { writer } = segment
    const { header, state, frames, durableBytes } = writer
    await writer.close().catch(() => undefined)
    const { logName, incarnation, seq } = header
    const orphan = { logName, incarnation, seq, path: writer.path, durableBytes, isPoisoned: false }
    if (frames === 0) {
      // Left behind, it would hold back the delivery of everything that follows.
      await files.remove(writer.path).catch(() => onOrphan(orphan))
      return
    }
    onOrphan(state === 'poisoned' ? await poison(files, logger, directory, orphan) : orphan)
  }
}

/** Creates the file, and with a log's first segment its directory. */
async function createWithDirectory(files: Files, directory: string, path: string): Promise<OpenFile> {
  try {
    return await files.open(path, 'create')
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
  await files.makeDirectory(directory)
  return await files.open(path, 'create')
}
