/**
 * The interface to the write-ahead log through which delivery finds, reads and removes sealed segments.
 *
 * Owns: what every engine promises. Does not own: where segments are stored, or whether one was delivered.
 * Law: salvaging, removing and quarantining are idempotent, so that they can be repeated after a crash.
 */

import type { Frame } from './frame.ts'

/** Identifies one segment among all segments of this node. */
export type SegmentRef = {
  readonly logName: string
  /** Ten characters, new for each log at each start of ingest. */
  readonly incarnation: string
  readonly seq: number
}

export type Segment = SegmentRef & {
  /** `open`: still being written. It blocks every later seq of its log. `quarantined`: kept for inspection, never delivered. */
  readonly state: 'open' | 'sealed' | 'quarantined'
  readonly bytes: number
}

export type LogListing = {
  readonly logName: string
  /** The log gets no further segments. It was closed before its segments were listed. */
  readonly isClosed: boolean
  /** By seq, then incarnation. */
  readonly segments: readonly Segment[]
}

/** Why a segment is in quarantine. */
export type QuarantineNote = {
  readonly reason: string
  /** When the segment was quarantined, ISO 8601. */
  readonly at: string
  /** Places in the stored segment that belong to no intact frame. */
  readonly damage: readonly { readonly offset: number; readonly bytes: number }[]
  /** Acknowledged records that are not delivered because of the damage: at least so many. */
  readonly records_lost: number
}

/** Highest seq that a log may have used. `problem` says why it cannot be told; without both there is none. */
export type HighestSeq = { readonly seq?: number | undefined; readonly problem?: string | undefined }

/** Records that were durable `asOfMs` (epoch ms) are counted, and all of a segment that has no more than these bytes. Some of the later ones are not. */
export type OpenRecords = SegmentRef & { readonly bytes: number; readonly records: number; readonly asOfMs: number }

/** A segment that is open and not in the list was opened after `atMs` (epoch ms). */
export type OpenCounts = { readonly segments: readonly OpenRecords[]; readonly atMs: number }

export interface SegmentSource {
  /** Names this source to other processes of the node, which open the same segments with it. A path, if segments are files. */
  readonly location: string
  /** Returns the names of all logs. */
  logNames(): Promise<readonly string[]>
  /** Returns what there is of one log. Throws if it cannot be listed. */
  readLog(logName: string): Promise<LogListing>
  /** Opens a sealed segment, or one that was quarantined as a whole. Throws SegmentError if it is damaged or not sealed. */
  open(ref: SegmentRef & { readonly state?: Segment['state'] }): Promise<SegmentReader>
  /** Returns the files that another process must be able to read in order to open a sealed segment. */
  filesOf(ref: SegmentRef): readonly string[]
  /** Whether there is a sealed segment with this identity. */
  has(ref: SegmentRef): Promise<boolean>
  /**
   * Salvages a sealed segment whose `open` or `frames` threw SegmentError: its intact frames become a sealed segment with the same ref, and the
   * original is kept as quarantined. Idempotent. Throws if the disk fails or is full; the segment is then as it was, or salvaged. Throws
   * SegmentError if the segment is of a format version that this program cannot read.
   */
  salvage(ref: SegmentRef): Promise<Salvage>
  /** Removes a sealed segment. Call it only once the segment's commit is durable. Idempotent. */
  remove(ref: SegmentRef): Promise<void>
  /** Keeps a sealed segment for a person instead of delivering it, with the reason. Idempotent. Returns its new location. */
  quarantine(ref: SegmentRef, reason: string): Promise<string>
  /** Returns why a segment was quarantined; undefined if that was not recorded. */
  quarantineNote(ref: SegmentRef): Promise<QuarantineNote | undefined>
  highestSeq(logName: string): Promise<HighestSeq>
  /** Returns the open segments with the number of their durable records, as of a few seconds ago. Undefined if that is not known. */
  openRecords(): Promise<OpenCounts | undefined>
  /**
   * Calls `onSealed` after segments of a log were sealed; null: of any log. Only a hint: calls may be late, merged or missing. Returns a
   * function that stops the watch.
   */
  watch(onSealed: (logName: string | null) => void): Promise<() => void>
}

export type Salvage =
  /** Read again, the segment is not damaged: the failure was transient. */
  | { readonly outcome: 'intact' }
  | {
      /** `salvaged`: open the segment again. `quarantined`: it had no intact frame, so there is nothing to deliver. */
      readonly outcome: 'salvaged' | 'quarantined'
      /** Acknowledged records that were lost to damage: at least so many. */
      readonly recordsLost: number
      /** Description of the damage, for a person. */
      readonly reason: string
      /** Where the original is kept. */
      readonly quarantine: string
    }

export interface SegmentReader {
  readonly header: SegmentRef
  readonly footer: {
    readonly records: number
    readonly firstReceivedAtMicros: number
    readonly sealedAtMicros: number
    /** Acknowledged records that were lost to damage before the segment was salvaged: at least so many. */
    readonly damagedRecords: number
  }
  /** Size of the stored segment. */
  readonly bytes: number
  /** Where its frames end, and the footer begins. */
  readonly framesEnd: number
  /**
   * Yields all frames in order, in groups of about `bufferBytesMax`. Payloads and envelopes are views, valid until the next step. Throws
   * SegmentError at the first damage, after the frames before it.
   */
  frames(bufferBytesMax: number): AsyncIterable<readonly Frame[]>
  /** Reads stored bytes again, at the `at` of a frame. Without it, records are copied to scratch space. */
  readonly reread?: ((into: Uint8Array, position: number) => number) | undefined
  /** Yields the stored bytes of the segment, including header and footer. */
  content(): AsyncIterable<Uint8Array>
  close(): Promise<void>
}
