import type { KeyPart } from '#copies/key-copies.ts'
import type { FrameInput } from '#log/frame.ts'
import type { AckLevel } from '#model/ack-level.ts'
import type { Delivered } from './commit-waits.ts'

/** Sent back for records that are durable. */
export type Receipt = { readonly seq: number; readonly records: number; readonly bytes: number }

/** `level`: what the acknowledgement says. `delivered`: the commit, for the level `committed`. */
export type Acknowledged = Stored & { readonly level: AckLevel; readonly delivered?: Delivered | undefined }

/**
 * `isRepeated`: it had been stored before, and this is its receipt of then. `nodeId`: the lost node that stored it, if this one has taken over
 * from it. `isOnDisk`: it took over the disk of that node, not its copies.
 */
export type Stored = Receipt & {
  readonly isRepeated: boolean
  readonly nodeId?: string | undefined
  readonly isOnDisk?: boolean | undefined
}

/** Remembers requests that their senders may repeat. */
export interface RequestMemory {
  /**
   * Stores a request that is new by `append`, which resolves once its frame is durable. Otherwise returns the receipt of the first time.
   * Requests with the same key wait for each other. Throws Rejection.
   */
  once(endpointId: string, key: string, frame: FrameInput, append: () => Promise<{ readonly seq: number }>): Promise<Stored>
  /** Returns a request of this node as the copy store keeps it, or undefined if it is not remembered any more. Throws Rejection. */
  keyOf(endpointId: string, key: string): Promise<KeyPart | undefined>
}
