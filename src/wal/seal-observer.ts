import type { Frame, FrameInput } from './frame.ts'

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
  /** Called for each intact frame of a segment that an earlier process, or a failing disk, left unsealed; more than once if recovery is repeated. */
  recovered(logName: string, seq: number, frame: Frame): void
  /** Never rejects. Undefined if there is nothing to wait for. */
  beforeSeal(): Promise<void> | undefined
}
