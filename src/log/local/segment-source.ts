/**
 * The reading side of the log: the segments in a WAL directory, for the process that delivers them.
 *
 * Owns: finding, opening, salvaging, removing and quarantining sealed segments. Does not own: files that are not sealed yet
 * (recover/recovery.ts), or whether a segment was delivered.
 * Law: salvaging, removing and quarantining are idempotent, so that they can be repeated after a crash.
 */
import { dirname, join } from 'node:path'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, type Files } from '#lib/files.ts'
import type {
  HighestSeq,
  OpenCounts,
  QuarantineNote,
  Salvage,
  Segment,
  SegmentReader,
  SegmentRef,
  SegmentSource,
} from '../segment-source.ts'
import { type LogFiles, listLogs, listSegments, type SegmentFile } from './format/directory.ts'
import { readHighWater } from './format/high-water.ts'
import { readSaltKey } from './format/salt-key.ts'
import { isLogName, type SegmentSuffix, segmentName } from './format/segment-file.ts'
import { LogListings } from './read/log-listings.ts'
import { openSegment } from './read/segment-reader.ts'
import { openSegmentsName, readOpenSegments } from './recover/open-segments.ts'
import { noteQuarantine, quarantineNotePath, readQuarantineNote } from './recover/quarantine.ts'
import { salvageSegment } from './recover/salvage.ts'

export type LocalSegmentSourceOptions = { readonly directory: string; readonly files: Files; readonly clock: Clock }

export class LocalSegmentSource implements SegmentSource {
  readonly location: string
  readonly #files: Files
  readonly #clock: Clock
  readonly #listings: LogListings
  #openRecords: { readonly changedAtMs: number; readonly counts: OpenCounts | undefined } | undefined

  constructor({ directory, files, clock }: LocalSegmentSourceOptions) {
    this.location = directory
    this.#files = files
    this.#clock = clock
    this.#listings = new LogListings({ directory, files, clock })
  }

  /** Returns all segments, by log name, then seq, then incarnation. Segments removed meanwhile are left out. */
  list(): Promise<readonly SegmentFile[]> {
    return listSegments(this.#files, this.location)
  }

  async logNames(): Promise<readonly string[]> {
    const logNames = await listLogs(this.#files, this.location)
    this.#listings.keepOnly(logNames)
    return logNames
  }

  readLog(logName: string): Promise<LogFiles> {
    return this.#listings.read(logName)
  }

  async highestSeq(logName: string): Promise<HighestSeq> {
    try {
      const found = await readHighWater(this.#files, join(this.location, logName))
      if (found !== 'damaged') return { seq: found?.seq }
      return {
        problem: 'is damaged: ingest accepts no data of this log from its next start on, until control says which seqs were used',
      }
    } catch (error) {
      return { problem: `cannot be read (${errorCode(error) ?? errorMessage(error)})` }
    }
  }

  /** The list is written once a second at most, so it is read again only if it is another one. */
  async openRecords(): Promise<OpenCounts | undefined> {
    const changedAtMs = await this.#files.changedAt(join(this.location, openSegmentsName))
    const kept = this.#openRecords
    if (kept !== undefined && kept.changedAtMs === changedAtMs) return kept.counts
    const counts = await readOpenSegments(this.#files, this.location)
    this.#openRecords = changedAtMs === undefined ? undefined : { changedAtMs, counts }
    return counts
  }

  async open(segment: SegmentRef & { readonly state?: Segment['state'] }): Promise<SegmentReader> {
    // An unreadable key must not stop every log: the header has the salt, too.
    const key = await readSaltKey(this.#files, this.location).catch(() => undefined)
    const suffix = segment.state === 'quarantined' ? 'quarantine' : 'wal'
    return await openSegment(this.#files, this.#path(segment, suffix), { segment, key })
  }

  salvage(segment: SegmentRef): Promise<Salvage> {
    return salvageSegment(this.#files, this.#clock, this.location, segment)
  }

  filesOf(segment: SegmentRef): readonly string[] {
    return [this.#path(segment, 'wal')]
  }

  async has(segment: SegmentRef): Promise<boolean> {
    return (await this.#files.bytes(this.#path(segment, 'wal'))) !== undefined
  }

  async remove(segment: SegmentRef): Promise<void> {
    await this.#files.remove(this.#path(segment, 'wal'))
  }

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

  async watch(onSealed: (logName: string | null) => void): Promise<() => void> {
    await this.#files.makeDirectory(this.location)
    return this.#files.watch(this.location, (name) => onSealed(name !== null && isLogName(name) ? name : null))
  }

  #path(segment: SegmentRef, suffix: SegmentSuffix): string {
    return join(this.location, segment.logName, segmentName(segment, suffix))
  }
}
