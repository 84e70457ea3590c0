import type { Frame, FrameInput } from './frame.ts'

/** Learns what a recovery finds in one segment. */
export type RecoveryObserver = {
  /** Called for each intact frame. */
  recovered(frame: Frame): void
  /** Called if acknowledged frames of the segment are lost, after all intact ones and before the loss is settled on disk. Never rejects. */
  lost(): Promise<void>
}

/**
 * Learns what is in a segment before delivery can see the segment.
 *
 * Law: a segment is sealed only after `beforeSeal` of its last frame has resolved.
 */
export type SealObserver = {
  /** Whether `appended` must be called with this frame. Asked once, when the frame is accepted. */
  observes(frame: FrameInput): boolean
  /** Called when such frames became durable in the segment that is open, before their appends resolve. */
  appended(seq: number, frames: readonly FrameInput[]): void
  /** Called when the recovery of a segment begins that an earlier process, or a failing disk, left unsealed; again if it is repeated. */
  recovering(logName: string, seq: number): RecoveryObserver
  /** Never rejects. Undefined if there is nothing to wait for. */
  beforeSeal(): Promise<void> | undefined
}
