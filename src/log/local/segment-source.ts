/**
 * The reading side of the log: the segments in a WAL directory, for the process that delivers them.
 *
 * Owns: finding, opening, repairing, removing and quarantining sealed segments. Does not own: files that are not sealed yet (recover/recovery.ts), or
 * whether a segment was delivered.
 * Law: repairing, removing and quarantining are idempotent, so that they can be repeated after a crash.
 */
import { dirname, join } from 'node:path'
import { type Clock, isoTimestamp, systemClock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, type Files } from '#lib/files.ts'
import type { OpenSegment, Salvage, SegmentRef, SegmentSource } from '../segment-source.ts'
import { type LogFiles, listLogs, listSegments, type SegmentFile } from './format/directory.ts'
import { readHighWater } from './format/high-water.ts'
import { readSaltKey } from './format/salt-key.ts'
import { isLogName, type SegmentSuffix, segmentName } from './format/segment-file.ts'
import { LogListings } from './read/log-listings.ts'
import { openSegment } from './read/segment-reader.ts'
import { noteQuarantine, type QuarantineNote, quarantineNotePath, readQuarantineNote } from './recover/quarantine.ts'
import { salvageSegment } from './recover/repair-sealed.ts'

export type LocalSegmentSourceOptions = { readonly directory: string; readonly files: Files; readonly clock?: Clock }

/** Returns the path of a sealed segment in a WAL directory. */
export function sealedPath(directory: string, segment: SegmentRef): string {
  return join(directory, segment.logName, segmentName(segment, 'wal'))
}

export class LocalSegmentSource implements SegmentSource {
  readonly #directory: string
  readonly #files: Files
  readonly #clock: Clock
  readonly #listings: LogListings

  constructor({ directory, files, clock = systemClock }: LocalSegmentSourceOptions) {
    this.#directory = directory
    this.#files = files
    this.#clock = clock
    this.#listings = new LogListings({ directory, files, clock })
  }

  /** Returns all segments, by log name, then seq, then incarnation. Segments removed meanwhile are left out. */
  list(): Promise<readonly SegmentFile[]> {
    return listSegments(this.#files, this.#directory)
  }

  /** Returns the names of all logs that have a directory, sorted. */
  async logNames(): Promise<readonly string[]> {
    const logNames = await listLogs(this.#files, this.#directory)
    this.#listings.keepOnly(logNames)
    return logNames
  }

  /** Returns the segments of one log, and whether it is closed. Throws if its directory cannot be read. */
  readLog(logName: string): Promise<LogFiles> {
    return this.#listings.read(logName)
  }

  /** Returns the highest seq that the log may have used; undefined if that cannot be read. */
  async highWater(logName: string): Promise<number | undefined> {
    const found = await readHighWater(this.#files, join(this.#directory, logName)).catch(() => undefined)
    return typeof found === 'object' ? found.seq : undefined
  }

  /** Returns why the highest seq of the log cannot be read; undefined if it can, or there is none. */
  async highWaterProblem(logName: string): Promise<string | undefined> {
    try {
      const found = await readHighWater(this.#files, join(this.#directory, logName))
      return found === 'damaged'
        ? 'is damaged: the next start of ingest continues after the highest seq that a file has'
        : undefined
    } catch (error) {
      return `cannot be read (${errorCode(error) ?? errorMessage(error)})`
    }
  }

  /** Whether the log has segments that are neither delivered nor quarantined. */
  async hasUndelivered(logName: string): Promise<boolean> {
    return (await this.readLog(logName)).segments.some(({ state }) => state !== 'quarantined')
  }

  /** Opens a sealed segment. Throws SegmentError if it is damaged, not sealed, or another one than its name says. */
  async open(segment: SegmentRef): Promise<OpenSegment> {
    // An unreadable key must not stop every log: the header has the salt, too.
    const key = await readSaltKey(this.#files, this.#directory).catch(() => undefined)
    return await openSegment(this.#files, this.#path(segment, 'wal'), { segment, key })
  }

  /**
   * Repairs a sealed segment that is damaged: its intact frames become a sealed segment of the same identity, and the original is kept as
   * quarantined. Idempotent. Throws if the disk fails or is full; the segment is then as it was. Throws SegmentError for another version.
   */
  salvage(segment: SegmentRef): Promise<Salvage> {
    return salvageSegment(this.#files, this.#clock, this.#directory, segment)
  }

  /** Whether there is a sealed segment with this identity. */
  async has(segment: SegmentRef): Promise<boolean> {
    return (await this.#files.bytes(this.#path(segment, 'wal'))) !== undefined
  }

  /** Removes a sealed segment. Idempotent. */
  async remove(segment: SegmentRef): Promise<void> {
    await this.#files.remove(this.#path(segment, 'wal'))
  }

  /** Renames a sealed segment so that it is kept and not delivered, and notes why. Returns the new path. Idempotent. */
  async quarantine(segment: SegmentRef, reason: string): Promise<string> {
    const [sealed, kept] = [this.#path(segment, 'wal'), this.#path(segment, 'quarantine')]
    if ((await this.#files.bytes(sealed)) !== undefined) {
      // Recovery keeps a damaged original under this name beside the copy of its intact frames.
      if ((await this.#files.bytes(kept)) !== undefined) throw new Error(`${kept} exists: move it elsewhere, then try again`)
      await this.#files.rename(sealed, kept)
    }
    const earlier = await readQuarantineNote(this.#files, kept)
    const note = earlier ?? { reason, at: isoTimestamp(this.#clock.now()), damage: [], records_lost: 0 }
    await noteQuarantine(this.#files, kept, note)
    return kept
  }

  /** Returns why a segment was quarantined; undefined if that was not recorded. */
  quarantineNote(segment: SegmentRef): Promise<QuarantineNote | undefined> {
    return readQuarantineNote(this.#files, this.#path(segment, 'quarantine'))
  }

  /** Removes a segment that the operator gives up, durably. Idempotent. */
  async discard(segment: SegmentRef, state: 'sealed' | 'quarantined'): Promise<void> {
    const path = this.#path(segment, state === 'sealed' ? 'wal' : 'quarantine')
    await this.#files.remove(path)
    if (state === 'quarantined') await this.#files.remove(quarantineNotePath(path))
    await this.#files.syncDirectory(dirname(path))
  }

  /**
   * Calls `onSealed` after a segment was sealed, as far as the operating system reports it, with the name of its log if that is known.
   * Returns a function that stops the watch.
   */
  async watch(onSealed: (logName: string | null) => void): Promise<() => void> {
    await this.#files.makeDirectory(this.#directory)
    return this.#files.watch(this.#directory, (name) => onSealed(name !== null && isLogName(name) ? name : null))
  }

  #path(segment: SegmentRef, suffix: SegmentSuffix): string {
    return join(this.#directory, segment.logName, segmentName(segment, suffix))
  }
}
