/**
 * Recovers what earlier runs and failed disks left behind: all logs at the start, single segments later.
 *
 * Owns: the last known seq of each log, and which segments still have to be recovered. Does not own: how one is recovered (recover-segment.ts).
 * Law: a directory that cannot be read does not stop the others. Its log has no last seq, and accepts no frame, until it can be read.
 * Segments that take long to recover do not stop the start either: their log accepts frames, which are delivered after them.
 */
import { join } from 'node:path'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode } from '#lib/files.ts'
import { inParallel } from '#lib/in-parallel.ts'
import type { FindCommittedSeqs, FindDelivered } from '../../log-writer.ts'
import type { SegmentFile } from '../format/directory.ts'
import { isSameSegment, parseSegmentName, segmentName } from '../format/segment-file.ts'
import type { DiskUsage } from '../read/disk-usage.ts'
import { MissingSegments } from './missing-segments.ts'
import type { NotedSegment, OpenSegments } from './open-segments.ts'
import type { Orphan } from './orphan.ts'
import { type RecoveryOptions, recoverSegment, surveyLog } from './recover-segment.ts'
import { UnknownSeqs } from './unknown-seqs.ts'

export type LogRecoveryOptions = Omit<RecoveryOptions, 'beforeForgotten'> & {
  readonly directory: string
  readonly usage: DiskUsage
  readonly openSegments: Pick<OpenSegments, 'logNames' | 'leftOpen' | 'wasListed' | 'write'>
  /** Undefined if nobody knows: missing segments are not looked for then. */
  readonly findDelivered: FindDelivered | undefined
  /** Undefined if nobody knows: a log without its high water continues from its file names then. */
  readonly findCommittedSeqs: FindCommittedSeqs | undefined
  /** `openPath` was the segment's file before. */
  readonly onSealed: (segment: SegmentFile, openPath: string) => void
}

export class LogRecovery {
  readonly #options: LogRecoveryOptions
  readonly #lastSeqs = new Map<string, number>()
  /** The reason for each log whose directory could not be read. */
  readonly #unreadable = new Map<string, string>()
  /** One survey at a time for each log: two would remove and count the same files. */
  readonly #surveys = new Map<string, Promise<void>>()
  /** Logs with files that are not in the disk usage yet. */
  readonly #uncounted = new Set<string>()
  /** By log, oldest first. */
  readonly #orphans = new Map<string, readonly Orphan[]>()
  /** Names of orphans that are being removed without a trace, because nothing in them was acknowledged. */
  readonly #forgotten = new Set<string>()
  /** One attempt at a time for each log: two would write the same files. */
  readonly #attempts = new Map<string, Promise<void>>()
  readonly #missing: MissingSegments
  readonly #unknownSeqs: UnknownSeqs
  /** Logs that had an open segment once, if no list says which of them still had. */
  #unlisted = 0

  constructor(options: LogRecoveryOptions) {
    this.#options = options
    this.#missing = new MissingSegments(options)
    this.#unknownSeqs = new UnknownSeqs({ ...options, onKnown: (logName, seq) => this.noteSeq(logName, seq) })
  }

  /** Reads all directories, and recovers for a bounded time. Sealed segments are only counted. */
  async start(logNames: readonly string[]): Promise<void> {
    const { limits, clock } = this.#options
    const all = [...new Set([...logNames, ...this.#options.openSegments.logNames()])]
    await inParallel(limits.surveyParallel, all, (logName) => this.#surveyIfReadable(logName))
    if (this.#unlisted > 0)
      this.#options.logger.error(
        { logs: this.#unlisted },
        'the list of open segments is missing or damaged: whether one of them was removed or cut is not known',
      )
    if (limits.recoveryWaitMs === 0) return
    const deadline = new AbortController()
    const overdue = new Promise<void>((resolve) => deadline.signal.addEventListener('abort', () => resolve()))
    const cancel = clock.setTimer(() => deadline.abort(), limits.recoveryWaitMs)
    await Promise.race([this.#recoverAll(limits.recoveryParallel, deadline.signal), overdue])
    cancel()
  }

  /** Whether nobody tried yet to read some orphans of an earlier process, segments are missing, or seqs unknown. */
  get isBehind(): boolean {
    const isUntried = [...this.#orphans.values()].some((orphans) => orphans.some(isUntriedOrphan))
    return isUntried || this.#missing.count > 0 || this.#unknownSeqs.count > 0
  }

  /** Segments that are still to be recovered, or missing. */
  *noted(): Generator<NotedSegment> {
    yield* this.#missing.all()
    for (const logName of this.#unreadable.keys()) yield* this.#options.openSegments.leftOpen(logName, undefined)
    for (const orphans of this.#orphans.values())
      for (const orphan of orphans) if (!this.#forgotten.has(nameOf(orphan))) yield notedOf(orphan)
  }

  /** Resolves with whether all frames that an earlier process left in the log were read. Waits for the first attempt only: others are up to `retry`. */
  async whenRead(logName: string): Promise<boolean> {
    if (this.#orphans.get(logName)?.some(isUntriedOrphan) === true) await this.#recover(logName)
    if (this.#unreadable.has(logName)) return false
    return this.#orphans.get(logName)?.some(({ isUnread }) => isUnread) !== true
  }

  /** Whether the log exists, or has existed since the start. */
  isKnown(logName: string): boolean {
    return this.#lastSeqs.has(logName)
  }

  noteSeq(logName: string, seq: number): void {
    this.#lastSeqs.set(logName, Math.max(seq, this.#lastSeqs.get(logName) ?? -1))
  }

  /** Returns the highest seq that the log has used, -1 for none. Throws while that is not known. */
  async lastSeq(logName: string): Promise<number> {
    if (this.#unreadable.has(logName)) await this.#survey(logName)
    this.#unknownSeqs.assertKnown(logName)
    return this.#lastSeqs.get(logName) ?? -1
  }

  /** Whether a segment of the log still has to be recovered, or is missing. */
  isIncomplete(logName: string): boolean {
    return this.#unreadable.has(logName) || this.#orphans.has(logName) || this.#missing.has(logName)
  }

  addOrphan(orphan: Orphan): void {
    this.#orphans.set(orphan.logName, [...(this.#orphans.get(orphan.logName) ?? []), orphan])
  }

  /** Returns the reason for each log that has a file, or a directory, which could not be recovered so far, or no known seq. */
  blocked(): ReadonlyMap<string, string> {
    const reasons = new Map(this.#unreadable)
    for (const [logName, orphans] of this.#orphans)
      for (const { problem } of orphans) if (problem !== undefined) reasons.set(logName, problem)
    for (const [logName, reason] of this.#unknownSeqs.blocked()) reasons.set(logName, reason)
    return reasons
  }

  /** Never throws: what fails is tried again with the next call. Begins with nothing more once the signal aborts. */
  async retry(signal: AbortSignal): Promise<void> {
    await this.#countAgain()
    for (const logName of this.#unreadable.keys()) await this.#surveyIfReadable(logName)
    await this.#recoverAll(this.#options.limits.retryParallel, signal)
  }

  /** Finds out which seqs were used, and which missing segments are lost. Waits for control, so nothing else should wait for it. Never throws. */
  async askControl(signal: AbortSignal): Promise<void> {
    await this.#unknownSeqs.resolve(signal)
    await this.#missing.resolve(signal)
  }

  async #surveyIfReadable(logName: string): Promise<void> {
    await this.#survey(logName).catch(() => undefined)
  }

  #survey(logName: string): Promise<void> {
    const running = this.#surveys.get(logName)
    if (running !== undefined) return running
    const surveying = this.#surveyOnce(logName)
      .catch((error: unknown) => {
        if (!this.#unreadable.has(logName)) this.#options.logger.error({ err: error, log: logName }, 'log directory unreadable')
        const code = errorCode(error) ?? errorMessage(error)
        this.#unreadable.set(
          logName,
          `new data is refused: the directory ${logName} of the WAL cannot be read (${code}): make it readable`,
        )
        throw error
      })
      .finally(() => this.#surveys.delete(logName))
    this.#surveys.set(logName, surveying)
    return surveying
  }

  async #surveyOnce(logName: string): Promise<void> {
    const { directory, usage, openSegments } = this.#options
    const path = join(directory, logName)
    const { lastSeq, orphans, highWater: found, entries } = await surveyLog(this.#options, path, logName)
    const highWater = found === 'damaged' ? undefined : found
    await usage.count(path, entries).catch(() => this.#uncounted.add(logName))
    this.#unreadable.delete(logName)
    this.noteSeq(logName, lastSeq)
    if (found === 'damaged') this.#unknownSeqs.add(logName)
    if (highWater?.opened !== undefined && !openSegments.wasListed) this.#unlisted += 1
    const left = openSegments.leftOpen(logName, highWater)
    for (const orphan of orphans) {
      const noted = left.find((segment) => isSameSegment(segment, orphan))
      this.addOrphan(noted === undefined ? orphan : withNoted(orphan, noted))
    }
    for (const segment of left) {
      this.noteSeq(logName, segment.seq)
      // Nothing in it was acknowledged, and a disk that failed may not have created it.
      if (segment.isFinal && segment.bytes === 0) continue
      const isThere = entries.some(({ name }) => {
        const parsed = parseSegmentName(name)
        return parsed !== undefined && isSameSegment({ logName, ...parsed }, segment)
      })
      if (!isThere) this.#missing.add(segment)
    }
  }

  async #countAgain(): Promise<void> {
    const { directory, usage, files } = this.#options
    for (const logName of this.#uncounted) {
      const path = join(directory, logName)
      await files
        .list(path)
        .then((entries) => usage.count(path, entries))
        .then(
          () => this.#uncounted.delete(logName),
          () => undefined,
        )
    }
  }

  async #recoverAll(parallel: number, signal: AbortSignal): Promise<void> {
    await inParallel(parallel, [...this.#orphans.keys()], (logName) => this.#recover(logName), signal)
  }

  /** Tries each orphan of the log once. */
  #recover(logName: string): Promise<void> {
    const running = this.#attempts.get(logName)
    if (running !== undefined) return running
    const attempt = this.#recoverOnce(logName).finally(() => this.#attempts.delete(logName))
    this.#attempts.set(logName, attempt)
    return attempt
  }

  async #recoverOnce(logName: string): Promise<void> {
    const { directory, onSealed, usage, openSegments } = this.#options
    for (const orphan of this.#orphans.get(logName) ?? []) {
      const beforeForgotten = async () => {
        // Otherwise the list would name it still, and a start after a crash would take its file for removed.
        this.#forgotten.add(nameOf(orphan))
        await openSegments.write()
      }
      const options = { ...this.#options, beforeForgotten }
      const { segment, retry, isGone = false } = await recoverSegment(options, join(directory, logName), orphan)
      const left = (this.#orphans.get(logName) ?? []).flatMap((other) => {
        if (other !== orphan) return [other]
        return retry === undefined ? [] : [retry]
      })
      if (left.length > 0) this.#orphans.set(logName, left)
      else this.#orphans.delete(logName)
      if (isGone && !this.#forgotten.has(nameOf(orphan))) this.#missing.add(notedOf(orphan))
      if (retry === undefined) this.#forgotten.delete(nameOf(orphan))
      if (segment !== undefined) onSealed(segment, orphan.path)
      else if (retry === undefined) {
        usage.forget(orphan.path)
        // The log is counted again: a quarantined copy may be left.
        this.#uncounted.add(logName)
      }
    }
  }
}

function isUntriedOrphan({ isUnread, problem }: Orphan): boolean {
  return isUnread === true && problem === undefined
}

function nameOf(orphan: Orphan): string {
  return join(orphan.logName, segmentName(orphan, 'open'))
}

function withNoted(orphan: Orphan, { bytes, records, isFinal }: NotedSegment): Orphan {
  return { ...orphan, acknowledged: { bytes, records }, ...(isFinal && { durableBytes: bytes }) }
}

function notedOf({ logName, seq, incarnation, acknowledged = { bytes: 0, records: 0 }, durableBytes }: Orphan): NotedSegment {
  return { logName, seq, incarnation, ...acknowledged, isFinal: durableBytes === acknowledged.bytes }
}
