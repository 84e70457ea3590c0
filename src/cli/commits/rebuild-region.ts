/** Records the commits of one region again, for control that does it by itself. */
import type { RebuildRegion } from '#control/upkeep/lost-commits.ts'
import { listAllMarkerFolders } from '#store/commits/marker-folders.ts'
import { rebuildFolders } from './rebuild-folders.ts'

export const rebuildRegion: RebuildRegion = async ({ store, stores, clock, region, concerns, keptMs, signal }) => {
  const folders = await listAllMarkerFolders(store.db, { region })
  const { tally, problems, unread } = await rebuildFolders(folders.filter(concerns), {
    ...{ store, stores, now: () => clock.now(), keptMs, dryRun: false },
    onCounted: () => undefined,
    onProgress: () => signal.throwIfAborted(),
  })
  // The next leader reads what this process did not.
  signal.throwIfAborted()
  return { recorded: tally.recorded, problems, unread }
}
