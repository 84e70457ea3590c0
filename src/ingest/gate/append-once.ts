import type { FrameInput } from '#log/frame.ts'
import type { AckLevel } from '#model/ack-level.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import type { GateContext } from './context.ts'
import { awaitsCopy } from './copied.ts'
import { gateLimits } from './limits.ts'
import type { Stored } from './receipt.ts'
import { tryAgain } from './rejection.ts'

export type RepeatableRequest = {
  readonly endpoint: Pick<SnapshotEndpoint, 'id' | 'copies'>
  readonly key: string
  readonly frame: FrameInput
  /** The level that the sender asks for, if any. */
  readonly asked?: AckLevel | undefined
  /** Not called for a request that was stored before. */
  readonly append: () => Promise<{ readonly seq: number }>
}

/** Stores a request that its sender may repeat, unless it was stored before. Rejects with Rejection, or as `append` does. */
export async function appendOnce(
  { log, storedRequests, copies }: Pick<GateContext, 'log' | 'storedRequests' | 'copies'>,
  { endpoint, key, frame, asked, append }: RepeatableRequest,
): Promise<Stored> {
  // After a crash, keys are in the frames that it left. Asked before the key is looked for: later, frames may be read that the search missed.
  const isEveryKeyKnown = await log.whenRecovered(endpoint.id)
  const stored = await storedRequests.once(endpoint.id, key, frame, isEveryKeyKnown ? append : refuse)
  // It may have been stored on this disk alone, and its sender was told so.
  // What a lost node had is in the store until it is delivered.
  const isOwn = stored.nodeId === undefined
  if (stored.isRepeated && isOwn && awaitsCopy(endpoint, asked)) await copies.whenCopied(endpoint.id, stored.seq)
  return stored
}

async function refuse(): Promise<never> {
  throw tryAgain('not_stored', 'this node cannot read all of its idempotency keys now', gateLimits.retryDiskSeconds)
}
