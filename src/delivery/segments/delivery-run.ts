import type { SegmentRef } from '#log/segment-source.ts'
import type { SegmentName } from '#model/artifact.ts'
import type { DestinationTarget } from '#model/destination.ts'
import type { FailingView } from '#model/node-protocol.ts'

/** One segment on its way to its commit, as the pipeline starts it. */
export type DeliveryRun = {
  readonly segment: SegmentRef
  /** Whether the segment may have been delivered before: it existed when the process started, or came back. */
  readonly mayBeCommitted: boolean
  /** Resolves when every earlier segment of the log is committed or parked. */
  readonly turn: Promise<unknown>
  /** Reports what the segment waits for, and the view if that is one, or null once it continues. */
  readonly report: (blockedBy: string | null, failingView?: FailingView) => void
  readonly signal: AbortSignal
}

/**
 * How a delivery ended. `quarantined`: no frame of the segment is intact, or it came back with more records than its commit. `gone`: someone
 * else removed or renamed it, so there is nothing left to deliver. `again`: the segment or its built files are not what they were, so it is to
 * be delivered again.
 */
export type DeliveryOutcome = 'committed' | 'parked' | 'quarantined' | 'gone' | 'again'

/** Thrown by a stage that ends a delivery before its commit. */
export class DeliveryEnded extends Error {
  override readonly name = 'DeliveryEnded'
  readonly outcome: Exclude<DeliveryOutcome, 'committed'>

  constructor(outcome: Exclude<DeliveryOutcome, 'committed'>) {
    super(`the delivery ended: ${outcome}`)
    this.outcome = outcome
  }
}

/** Facts about a segment, from its footer and name. */
export type SegmentFacts = {
  /** The id of its commit. */
  readonly id: string
  readonly name: SegmentName
  readonly records: number
  /** Acknowledged records that were lost to damage: at least so many. */
  readonly recordsDamaged: number
  readonly walBytes: number
  readonly firstReceivedAt: string
  readonly sealedAt: string
}

/** The destination that is bound now, and the session name that the owner of the role sees. */
export type DeliveryTarget = DestinationTarget & { readonly session: string }

/** Whether both targets are the same bucket, prefix and encryption. */
export function isSameLocation(a: DestinationTarget, b: DestinationTarget): boolean {
  const isSameBucket = a.id === b.id && a.bucket === b.bucket && a.region === b.region
  return isSameBucket && a.prefix === b.prefix && a.encryption === b.encryption && a.kms_key_arn === b.kms_key_arn
}
