/**
 * The segment that a log writes to, if it has one.
 *
 * Owns: when a segment is opened, sealed by size or age, written again after it lost its file, or left behind. Does not own: the queue of the
 * log (log.ts), the bytes of a segment (segment-writer.ts), files that were left behind (recover/recovery.ts).
 * Law: there is at most one, and its calls do not overlap. It ends as a sealed file, as an orphan, or removed if nothing in it was acknowledged.
 */
import { join } from 'node:path'
import { InvariantError } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import type { Durations } from '#lib/durations.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, type Files, type OpenFile } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { toLogError } from '../../disk-error.ts'
import type { LogLimits } from '../../limits.ts'
import type { LogError } from '../../log-error.ts'
import type { Appended, LogHooks, LogSettings } from '../../log-writer.ts'
import type { SealObserver } from '../../seal-observer.ts'
import type { SegmentRef } from '../../segment-source.ts'
import type { SegmentFile } from '../format/directory.ts'
import type { Salt } from '../format/frame.ts'
import { writeHighWater } from '../format/high-water.ts'
import { FOOTER_BYTES, HEADER_BYTES, segmentName } from '../format/segment-file.ts'
import type { NotedSegment, OpenSegments } from '../recover/open-segments.ts'
import { type Orphan, poison } from '../recover/orphan.ts'
import type { FrameGroup } from './frame-group.ts'
import { SegmentWriter, UnlinkedError } from './segment-writer.ts'

export type CurrentSegmentOptions = {
  readonly logName: string
  readonly directory: string
  readonly incarnation: string
  /** Returns the highest known seq, -1 for none. Called before the first segment; throws while the disk cannot be read. */
  readonly lastSeq: () => Promise<number>
  /** Called for each segment; throws while the disk cannot be read or written. */
  readonly saltOf: (segment: SegmentRef) => Promise<Salt>
  readonly settings: LogSettings
  /** The list of all logs' segments, this one's included. */
  readonly openSegments: Pick<OpenSegments, 'round' | 'write'>
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: LogLimits
  /** How long each fdatasync took, over all logs. */
  readonly syncs: Durations
  readonly observer?: SealObserver
  readonly copy?: LogHooks['copy']
  readonly onGrown: (path: string, bytes: number) => void
  readonly onSealed: (segment: SegmentFile, openPath: string) => void
  readonly onOrphan: (orphan: Orphan) => void
  /** A segment whose file was removed while it was in use was written again. */
  readonly onSalvaged: () => void
  /** Called after every group, with its failure or with undefined if it became durable, and after a seal that failed. */
  readonly onOutcome: (failure: LogError | undefined) => void
}

type OpenSegment = {
  readonly writer: SegmentWriter
  readonly openedAtMs: number
  /** As the settings were when it was opened: it is copied from its first byte, or not at all. */
  readonly isCopied: boolean
  cancelTimer: () => void
}

export class CurrentSegment {
  readonly #options: CurrentSegmentOptions
  readonly #onDue: () => void
  #settings: LogSettings
  #lastSeq: number | undefined
  #segment: OpenSegment | undefined
  /** The segment that is being opened, from when its file and its high water are durable. */
  #opening: SegmentRef | undefined
  #problem: string | undefined
  #isDue = false
  /** When a segment was last opened or sealed, on the monotonic clock. */
  #activeAtMs = Number.NEGATIVE_INFINITY

  /** `onDue` is called when the segment should be sealed, which the log does between two groups. */
  constructor(options: CurrentSegmentOptions, onDue: () => void) {
    this.#options = options
    this.#onDue = onDue
    this.#settings = options.settings
  }

  /** The highest seq that was used, -1 for none. */
  get lastSeq(): number {
    return this.#lastSeq ?? -1
  }

  /** Why the log cannot go on, and what to do; undefined if it can. */
  get problem(): string | undefined {
    return this.#problem
  }

  get isDue(): boolean {
    return this.#isDue
  }

  /** Whether its file was removed: its records exist only in this process. */
  get isUnlinked(): boolean {
    return this.#segment?.writer.state === 'unlinked'
  }

  /** When the open segment was opened, on the monotonic clock; undefined if there is none. */
  get openedAtMs(): number | undefined {
    return this.#segment?.openedAtMs
  }

  /** The segment that is written to or being opened, and what is durable in it. */
  get noted(): NotedSegment | undefined {
    const { writer } = this.#segment ?? {}
    if (writer !== undefined) return { ...identityOf(writer.header), bytes: writer.durableBytes, records: writer.records }
    return this.#opening && { ...this.#opening, bytes: 0, records: 0 }
  }

  /** The size of the largest group that does not make a segment too large. */
  get groupBytesMax(): number {
    return this.#settings.segmentBytes - HEADER_BYTES - FOOTER_BYTES
  }

  configure(settings: LogSettings): void {
    const { clock } = this.#options
    const { segmentBytes, segmentMaxAgeMs } = this.#settings
    this.#settings = settings
    const open = this.#segment
    if (open === undefined) return
    if (settings.segmentMaxAgeMs !== segmentMaxAgeMs) {
      open.cancelTimer()
      const ageMs = clock.monotonic() - open.openedAtMs
      open.cancelTimer = clock.setTimer(() => this.#due(), Math.max(0, settings.segmentMaxAgeMs - ageMs))
    }
    const isTooLarge = settings.segmentBytes < segmentBytes && this.#isFull(open.writer)
    if (isTooLarge || open.isCopied !== (settings.isCopied ?? false)) this.#due()
  }

  /** Makes a group durable, in a new segment if it does not fit into the open one. */
  async append(group: FrameGroup): Promise<Appended> {
    const { onOutcome } = this.#options
    try {
      const writer = await this.#writerFor(group.bytes)
      const at = writer.durableBytes
      const isCopied = this.#segment?.isCopied === true
      await this.#append(writer, group)
      const chunks = writer.takeLastChunks()
      if (group.observed.length > 0) this.#options.observer?.appended(writer.header.seq, group.observed)
      onOutcome(undefined)
      if (writer.state === 'open' && this.#isFull(writer)) this.#isDue = true
      const copied = isCopied ? this.#options.copy?.({ ...identityOf(writer.header), at, chunks }) : undefined
      // Its callers may be rejected for another reason.
      copied?.catch(() => undefined)
      return { seq: writer.header.seq, sync: writer.lastSync, copied }
    } catch (error) {
      if (error instanceof InvariantError) throw error
      const failure = toLogError(error)
      onOutcome(failure)
      await this.#leaveFailed()
      throw failure
    }
  }

  /** No caller waits for this seal. If it fails, the segment stays open or is abandoned, and nothing in it is lost. */
  async seal(): Promise<void> {
    this.#isDue = false
    try {
      await this.#seal()
    } catch (error) {
      if (error instanceof InvariantError) throw error
      this.#options.onOutcome(toLogError(error))
      this.#sealLater()
    }
  }

  /** Closes a segment that cannot be written to any more. It becomes an orphan, or is removed if it has no acknowledged frame. */
  async abandon(): Promise<void> {
    const { files, directory, onOrphan, openSegments, logger } = this.#options
    const segment = this.#segment
    if (segment === undefined) return
    segment.cancelTimer()
    const { writer } = segment
    if (writer.state === 'unlinked') return await this.#salvage().catch(() => undefined)
    this.#segment = undefined
    const { header, state, frames, records, durableBytes } = writer
    await writer.close().catch(() => undefined)
    const acknowledged = { bytes: durableBytes, records }
    const orphan = { ...identityOf(header), path: writer.path, durableBytes, acknowledged, isPoisoned: false }
    if (frames === 0) {
      await openSegments.write().catch(() => undefined)
      // Left behind, it would hold back the delivery of everything that follows.
      await files.remove(writer.path).catch(() => onOrphan(orphan))
      return
    }
    onOrphan(state === 'poisoned' ? await poison(files, logger, directory, orphan) : orphan)
    // Rejected records may be at its end, and are sent again into the next segment: after a crash, a start must not deliver both.
    if (state === 'poisoned') await openSegments.write().catch(() => undefined)
  }

  #isFull({ durableBytes }: SegmentWriter): boolean {
    return durableBytes + FOOTER_BYTES >= this.#settings.segmentBytes
  }

  async #append(writer: SegmentWriter, group: FrameGroup): Promise<void> {
    try {
      await writer.append(group)
      this.#options.onGrown(writer.path, writer.durableBytes)
    } catch (error) {
      if (!(error instanceof UnlinkedError)) throw error
      await this.#salvage()
    }
  }

  /** Returns the writer of the open segment, or of a new one if the group does not fit. */
  async #writerFor(bytes: number): Promise<SegmentWriter> {
    const open = this.#segment
    if (open !== undefined) {
      const { segmentBytes, isCopied = false } = this.#settings
      const fits = open.writer.durableBytes + bytes + FOOTER_BYTES <= segmentBytes && open.isCopied === isCopied
      if (fits && open.writer.state === 'open') return open.writer
      try {
        await this.#seal()
      } catch (error) {
        // A full disk leaves the segment open. If it was abandoned instead, the next segment shows whether the disk still works.
        if (this.#segment !== undefined) throw error
      }
    }
    return await this.#open()
  }

  async #open(): Promise<SegmentWriter> {
    const { logName, directory, incarnation, files, clock, limits, logger, syncs } = this.#options
    this.#lastSeq ??= await this.#options.lastSeq()
    const seq = Math.max(this.#lastSeq, this.#settings.seqAbove) + 1
    const salt = await this.#options.saltOf({ logName, incarnation, seq })
    const header = { logName, incarnation, seq, createdAtMicros: clock.now() * 1_000, salt }
    const path = join(directory, segmentName(header, 'open'))
    const file = await this.#create(header, path)
    this.#lastSeq = seq
    const writer = new SegmentWriter({ files, file, header, clock, syncs })
    const cancelTimer = clock.setTimer(() => this.#due(), this.#settings.segmentMaxAgeMs)
    const openedAtMs = clock.monotonic()
    if (openedAtMs - this.#activeAtMs >= limits.idleMs) logger.notice({ log: logName, seq }, 'data arriving')
    this.#activeAtMs = openedAtMs
    this.#segment = { writer, openedAtMs, cancelTimer, isCopied: this.#settings.isCopied ?? false }
    this.#opening = undefined
    return writer
  }

  /** Creates the file of a segment. Its name and its seq are durable then. */
  async #create(segment: SegmentRef, path: string): Promise<OpenFile> {
    const { files, directory, openSegments, onOrphan } = this.#options
    const { seq, incarnation } = segment
    let file: OpenFile | undefined
    try {
      file = await createWithDirectory(files, directory, path)
      let round: number
      // A list that was taken meanwhile does not have the segment.
      do {
        round = openSegments.round
        await writeHighWater(files, directory, { seq, opened: { incarnation, round } })
      } while (round !== openSegments.round)
      // Not before: a crash would leave a segment in the list without a durable file, which looks as if somebody had removed it.
      this.#opening = identityOf(segment)
      return file
    } catch (error) {
      await file?.close().catch(() => undefined)
      if (errorCode(error) === 'EEXIST') throw error
      // Nothing was written under this seq, so it may be used again. If the file stays, creating it again would always fail: a disk that fails
      // may have created it.
      await openSegments.write().catch(() => undefined)
      await files.remove(path).catch(() => {
        this.#lastSeq = seq
        onOrphan({ ...identityOf(segment), path, durableBytes: 0, isPoisoned: false })
      })
      throw error
    }
  }

  #due(): void {
    this.#isDue = true
    this.#onDue()
  }

  #sealLater(): void {
    const { clock, limits } = this.#options
    if (this.#segment === undefined) return
    this.#segment.cancelTimer()
    this.#segment.cancelTimer = clock.setTimer(() => this.#due(), limits.upkeepIntervalMs)
  }

  async #seal(): Promise<void> {
    const { clock, observer } = this.#options
    const segment = this.#segment
    if (segment === undefined) return
    const { writer, cancelTimer } = segment
    cancelTimer()
    const observed = observer?.beforeSeal()
    if (observed !== undefined) await observed
    try {
      if (writer.state === 'unlinked') await this.#salvage()
      else this.#sealed(writer, await writer.seal(this.#sealedPath(writer), clock.now() * 1_000))
    } catch (error) {
      if (error instanceof UnlinkedError) return await this.#salvage()
      await this.#leaveFailed()
      throw error
    }
  }

  #sealedPath({ header }: SegmentWriter): string {
    return join(this.#options.directory, segmentName(header, 'wal'))
  }

  #sealed(writer: SegmentWriter, bytes: number): void {
    const { logName, incarnation, clock, onSealed } = this.#options
    // New settings may have set another timer while the segment was being sealed.
    this.#segment?.cancelTimer()
    this.#segment = undefined
    this.#isDue = false
    this.#activeAtMs = clock.monotonic()
    onSealed(
      { logName, incarnation, seq: writer.header.seq, path: this.#sealedPath(writer), bytes, state: 'sealed' },
      writer.path,
    )
  }

  async #leaveFailed(): Promise<void> {
    if (this.#segment === undefined) return
    const { state, frames } = this.#segment.writer
    if (state === 'unlinked') this.#sealLater()
    else if (state !== 'open' || frames === 0) await this.abandon()
  }

  /** Writes a segment again that lost its file. Until that has worked, the log accepts nothing: later data would overtake it. */
  async #salvage(): Promise<void> {
    const { logName, incarnation, files, clock, logger, onOrphan, onSalvaged } = this.#options
    const segment = this.#segment
    if (segment === undefined) return
    const { writer } = segment
    const { seq } = writer.header
    const path = this.#sealedPath(writer)
    let bytes: number
    try {
      bytes = await writer.salvage(path, clock.now() * 1_000)
    } catch (error) {
      const code = errorCode(error) ?? errorMessage(error)
      this.#problem = `segment ${logName}/${seq}-${incarnation} was removed while it was in use and cannot be written again (${code}): repair the disk, and do not stop ingest, which alone has its records`
      throw error
    }
    this.#problem = undefined
    segment.cancelTimer()
    logger.error({ log: logName, seq, frames: writer.frames, path }, 'segment file removed while in use; records written again')
    onSalvaged()
    this.#sealed(writer, bytes)
    // Another file of this name would hold back delivery.
    const isReplaced = (await files.bytes(writer.path).catch(() => undefined)) !== undefined
    if (isReplaced) onOrphan({ logName, incarnation, seq, path: writer.path, isPoisoned: false })
  }
}

function identityOf({ logName, incarnation, seq }: SegmentRef): SegmentRef {
  return { logName, incarnation, seq }
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
