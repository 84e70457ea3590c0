/**
 * When records may be acknowledged: once they are on this disk, and for an endpoint with two copies in the copy store as well.
 *
 * Law: there is no acknowledgement with less than the endpoint asks for, whatever the state of the store, unless the sender asks for less.
 */
import type { KeyPart } from '#copies/key-copies.ts'
import type { Appended } from '#log/log-writer.ts'
import type { AckLevel } from '#model/ack-level.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { gateLimits } from './limits.ts'
import { requirePlace, tryAgain } from './rejection.ts'

/** The copy store, as the gate needs it. */
export interface CopyStore {
  /** Why records that need a copy are refused; undefined while they are taken. */
  readonly refusal: string | undefined
  /**
   * Resolves once all that a segment has by now is copied, or it is delivered, and the key of the request is copied, which `keyOf` reads.
   * Rejects with a CopyError if that takes long.
   */
  whenCopied(logName: string, seq: number, keyOf: () => Promise<KeyPart | undefined>): Promise<void>
}

/** A node without a copy store. */
export const noCopyStore: CopyStore = {
  refusal: 'this node has no copy store: set INLET_COPY_URL on it',
  whenCopied: () => Promise.reject(new Error('this node has no copy store')),
}

type Copied = Pick<SnapshotEndpoint, 'copies'>

export function needsCopy({ copies }: Copied): boolean {
  return copies > 1
}

/** Whether an acknowledgement waits for the copy. `asked` is undefined if the sender asks for no level. */
export function awaitsCopy(endpoint: Copied, asked: AckLevel | undefined): boolean {
  return needsCopy(endpoint) && asked !== 'disk'
}

/** Throws Rejection if the endpoint needs copies and there are none now. */
export function requireCopyStore(endpoint: Copied, { refusal }: Pick<CopyStore, 'refusal'>): void {
  if (refusal !== undefined && needsCopy(endpoint)) throw tryAgain('not_copied', refusal, gateLimits.retryStoreSeconds)
}

/** Resolves once what was appended may be acknowledged, if it need not be committed. Rejects with Rejection, and with a CopyError. */
export async function whenAcknowledgeable(
  { fence }: { readonly fence: { readonly reason: string | undefined } },
  { endpoint, asked }: { readonly endpoint: Copied; readonly asked: AckLevel | undefined },
  appended: Appended,
): Promise<Appended> {
  if (!awaitsCopy(endpoint, asked)) return appended
  // Its setting changed on the way to the disk.
  if (appended.copied === undefined)
    throw tryAgain('not_copied', 'the copies of the endpoint have just been changed', gateLimits.retryStoreSeconds)
  await appended.copied
  // The node may have lost its place since the record was on the disk.
  requirePlace(fence)
  return appended
}
