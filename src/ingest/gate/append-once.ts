import type { FrameInput } from '#log/frame.ts'
import type { GateContext } from './context.ts'
import type { Stored } from './receipt.ts'

export type RepeatableRequest = {
  readonly endpointId: string
  readonly key: string
  readonly frame: FrameInput
  /** Not called for a request that was stored before. */
  readonly append: () => Promise<{ readonly seq: number }>
}

/** Stores a request that its sender may repeat, unless it was stored before. Rejects with Rejection, or as `append` does. */
export async function appendOnce(
  { log, storedRequests }: Pick<GateContext, 'log' | 'storedRequests'>,
  { endpointId, key, frame, append }: RepeatableRequest,
): Promise<Stored> {
  // After a crash, keys are in the frames that it left.
  await log.whenRecovered(endpointId)
  return await storedRequests.once(endpointId, key, frame, append)
}
