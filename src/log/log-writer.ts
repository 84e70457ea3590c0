/**
 * The interface to the write-ahead log through which ingest appends.
 *
 * Owns: what every engine promises. Does not own: where and how frames are stored.
 * Law: an append resolves only after its frame is durable, and every frame whose append resolved ends up in a sealed segment, in the order of
 * the appends.
 */
import type { Durations } from '#lib/durations.ts'
import type { Service } from '#lib/service.ts'
import type { FrameInput } from './frame.ts'
import type { SealObserver } from './seal-observer.ts'
import type { SegmentPiece } from './segment-piece.ts'
import type { Segment, SegmentRef } from './segment-source.ts'

export type LogSettings = {
  /** A segment is sealed before it grows beyond this. Only a segment of a single group may be larger. */
  readonly segmentBytes: number
  /** A segment is sealed when its first frame is this old. */
  readonly segmentMaxAgeMs: number
  /** New segments get a seq above this, even if the storage has no trace of it; -1 for none. */
  readonly seqAbove: number
  /** Any name. Owners take turns at the storage, however many logs each one has. Logs without an owner count as those of one. */
  readonly owner?: string
  /** Whether what becomes durable is handed to `copy`. New settings hold for new segments: an open one is sealed before. */
  readonly isCopied?: boolean
}

/** When the write began and ended that made a frame durable, on the monotonic clock. */
export type Sync = { readonly startedAtMs: number; readonly endedAtMs: number }

/**
 * Where a frame is durable. `sync` made it so; a stand-in may leave it out. `copied` is set for a log that is copied, and settles as `copy`
 * does for the frames that became durable together.
 */
export type Appended = { readonly seq: number; readonly sync?: Sync | undefined; readonly copied?: Promise<void> | undefined }

export type LogHealth = { readonly healthy: boolean; readonly reasons: readonly string[] }

export type BlockedLog = { readonly logName: string; readonly reason: string }

/** Storage that all logs use at this moment, and losses since the start. */
export type LogUsage = {
  /** Size of all stored segments, delivered or not. Segments that delivery removes are subtracted within a second. */
  readonly bytes: number
  /** Size of the stored segments that are still written to. */
  readonly openBytes: number
  /** Age of the oldest segment that is still written to, in milliseconds; 0 if there is none. */
  readonly oldestOpenMs: number
  /** Bytes of frames in memory that are not durable yet. */
  readonly waitingBytes: number
  /** How long each write took that made a group of frames durable. */
  readonly syncs: Durations
  /** Open segments that were salvaged because somebody removed them. */
  readonly salvagedSegments: number
  /** Unsealed segments that recovery found damaged, cut or missing, and the acknowledged records that are lost with them, at least. */
  readonly lost: { readonly segments: number; readonly records: number }
}

/**
 * Why a log takes no more frames.
 *
 * `closed`: its endpoint is being deleted. Once all is sealed, readers see the log as closed.
 * `unowned`: no endpoint owns it. It is removed once delivery has removed all of its segments.
 * `adopted`: its node is gone, and this one only delivers what it left.
 * `fenced`: another writer has taken over. What is not acknowledged yet is rejected, and no configuration opens the log again.
 */
export type EndReason = 'closed' | 'unowned' | 'adopted' | 'fenced'

/** Returns those of the segments whose commits control has recorded. Throws while it cannot be asked. */
export type FindDelivered = <Ref extends SegmentRef>(segments: readonly Ref[], signal: AbortSignal) => Promise<readonly Ref[]>

/** Returns the highest seq of each log whose commit control has recorded. Throws while it cannot be asked. */
export type FindCommittedSeqs = (signal: AbortSignal) => Promise<Readonly<Record<string, number>>>

/** Calls of an engine to the process that appends. */
export type LogHooks = {
  /** Called with what a log has grown by, or shrunk by if negative. */
  readonly onUsage?: (logName: string, bytes: number) => void
  readonly observer?: SealObserver
  /** Called when a segment was sealed, those that recovery seals included. */
  readonly onSealed?: (segment: Segment) => void
  /** Called when frames are durable. They are acknowledged once the promise has settled: at once if there is none. */
  readonly mayAcknowledge?: () => Promise<void> | undefined
  /** Called with what became durable in a log that is copied, in the order of its bytes. Nobody changes the chunks. */
  readonly copy?: (piece: SegmentPiece) => Promise<void>
  /** Says which missing segments were delivered. Without it, missing ones are not looked for. */
  readonly findDelivered?: FindDelivered
  /** Says which seqs were used if the storage has lost that. Without it, a log continues from the names of its files. */
  readonly findCommittedSeqs?: FindCommittedSeqs
}

export interface LogWriter extends Service {
  readonly usage: LogUsage
  /** Opens the log if it is new, or has ended and may be opened again. Changed settings also seal the open segment, if it is too old or too large for them. */
  configure(logName: string, settings: LogSettings): void
  /** Resolves with the segment's seq when the frame is durable. Rejects with a LogError. Frames that become durable together may share one promise. */
  append(logName: string, frame: FrameInput): Promise<Appended>
  /**
   * Resolves with whether the observer knows all intact frames that an earlier process left unsealed in the log. False while the disk fails
   * to read them. Waits for the first attempt to read them, and starts no other.
   */
  whenRecovered(logName: string): Promise<boolean>
  /**
   * Ends the log, also one that never had data: it rejects further appends. Resolves once that is final, so that nothing is acknowledged
   * afterwards: what was accepted is durable, or rejected. Idempotent; another reason replaces the one before, unless that is `fenced`.
   */
  end(logName: string, reason: EndReason): Promise<void>
  /** Ends every other log as `unowned`. Call it only with a complete list of names, never because control cannot be reached. */
  endUnowned(owned: ReadonlySet<string>): void
  /** Unhealthy while the storage accepts no write at all. A log that cannot go on alone is in `blocked`. */
  health(): LogHealth
  /**
   * Returns the logs that cannot go on by themselves, with what is wrong and what to do. A segment that cannot be recovered holds back the
   * delivery of what came later. Appends go on, if the log can be read.
   */
  blocked(): readonly BlockedLog[]
}
