/**
 * Changes that nodes must see.
 *
 * Law: the change and its epoch become visible in one transaction, and those who wait for it are told after it, never before.
 */
import { bumpEpoch } from '#store/epoch.ts'
import { type Store, type Tx, transact } from '#store/store.ts'
import type { EpochFeed } from './epoch-feed.ts'

export type ChangesOptions = { readonly store: Store; readonly feed: EpochFeed }

export class Changes {
  readonly #options: ChangesOptions

  constructor(options: ChangesOptions) {
    this.#options = options
  }

  /** Runs `work` in one transaction with a new epoch. `work` may run again after a collision: no effects but in the database. */
  async run<T>(work: (db: Tx, epoch: number) => Promise<T>): Promise<T> {
    const { store, feed } = this.#options
    const result = await transact(store, async (db) => {
      // First, so that all changes take their locks in one order and none can wait for another in a ring.
      const epoch = await bumpEpoch(db)
      return work(db, epoch)
    })
    await feed.changed()
    return result
  }
}
