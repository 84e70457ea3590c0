import type { Store } from '#store/store.ts'
import { type ChangeTx, inNewEpoch } from './epoch.ts'
import type { EpochFeed } from './epoch-feed.ts'

/** Runs a change that nodes must see (`store/cluster/epoch.ts`), and wakes waiting nodes once it is committed. */
export type ApplyChange = <T>(work: (db: ChangeTx, epoch: number) => Promise<T>) => Promise<T>

export function createApplyChange(store: Store, feed: EpochFeed): ApplyChange {
  return async (work) => {
    const result = await inNewEpoch(store, work)
    await feed.notifyChanged()
    return result
  }
}
