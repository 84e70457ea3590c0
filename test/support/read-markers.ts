import { clearMissingCommits, listMissingCommits } from '#store/commits/missing-commits.ts'
import type { Store } from '#store/store.ts'

/** As if control had read the markers of every region, and had every commit. */
export async function readMarkers(store: Store): Promise<void> {
  await clearMissingCommits(store.db, await listMissingCommits(store.db))
  await store.db.updateTable('losses').set({ searched_at: 0 }).execute()
}
