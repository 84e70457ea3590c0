import type { FrameInput } from '#log/frame.ts'
import type { AckLevel } from '#model/ack-level.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import type { GateContext } from './context.ts'
import { awaitsCopy } from './copied.ts'
import { gateLimits } from './limits.ts'
import type { Stored } from './receipt.ts'
import { tryAgain } from './rejection.ts'

type Context = Pick<GateContext, 'log' | 'storedRequests' | 'copies' | 'commitWaits'>

export type RepeatableRequest = {
  readonly endpoint: Pick<SnapshotEndpoint, 'id' | 'account_id' | 'copies'>
  readonly key: string
  readonly frame: FrameInput
  /** The level that the sender asks for, if any. */
  readonly asked?: AckLevel | undefined
  /** Not called for a request that was stored before. */
  readonly append: () => Promise<{ readonly seq: number }>
}

/** Stores a request that its sender may repeat, unless it was stored before. Rejects with Rejection, or as `append` does. */
export async function appendOnce(context: Context, { endpoint, key, frame, asked, append }: RepeatableRequest): Promise<Stored> {
  const { log, storedRequests } = context
  // After a crash, keys are in the frames that it left. Asked before the key is looked for: later, frames may be read that the search missed.
  const isEveryKeyKnown = await log.whenRecovered(endpoint.id)
  const stored = await storedRequests.once(endpoint.id, key, frame, isEveryKeyKnown ? append : refuse)
  // It may have been stored on this disk alone, and its sender was told so.
  if (stored.isRepeated && awaitsCopy(endpoint, asked)) await whenSafe(context, { endpoint, key }, stored)
  return stored
}

/** Resolves once the records survive the loss of a machine. Those that were restored from a copy store are there until they are delivered. */
async function whenSafe(
  { copies, commitWaits, storedRequests }: Context,
  { endpoint, key }: Pick<RepeatableRequest, 'endpoint' | 'key'>,
  stored: Stored,
): Promise<void> {
  const { seq, nodeId, isOnDisk } = stored
  if (nodeId === undefined) return await copies.whenCopied(endpoint.id, seq, () => storedRequests.keyOf(endpoint.id, key))
  if (isOnDisk !== true) return
  const segment = { accountId: endpoint.account_id, endpointId: endpoint.id, nodeId, seq }
  if ((await commitWaits.wait(segment, gateLimits.adoptedWaitMs).delivered) !== undefined) return
  const reason = 'the records are on the disk of a lost node alone, and are being delivered'
  throw tryAgain('not_copied', reason, gateLimits.retryStoreSeconds)
}

async function refuse(): Promise<never> {
  throw tryAgain('not_stored', 'this node cannot read all of its idempotency keys now', gateLimits.retryDiskSeconds)
}
