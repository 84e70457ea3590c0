/** Records lost commits again from several folders: first it counts all markers, then it reads them. */
import { errorMessage } from '#lib/error-message.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { hasCommitsIn, type MarkerFolder } from '#store/commits/marker-folders.ts'
import { countMarkers, type RebuildOptions, rebuildFolder, type Tally } from './rebuild.ts'

const problemsKept = 1000

export type FoldersOptions = Pick<RebuildOptions, 'store' | 'now' | 'keptMs' | 'dryRun'> & {
  readonly stores: ObjectStores
  /** Called with the number of all markers, before the first is read. */
  readonly onCounted: (markers: number) => void
  /** Called with the number of markers since the last call. May throw to end the work. */
  readonly onProgress: (markers: number) => void
}

export type RebuiltFolders = {
  readonly tally: Tally
  /** The first of them: a bucket may have any number of other objects. */
  readonly problems: readonly string[]
  readonly problemCount: number
  /** Accounts with a bucket that was not read. What is rejected was not lost. */
  readonly unread: readonly string[]
}

export async function rebuildFolders(
  folders: readonly MarkerFolder[],
  { store, stores, now, keptMs, dryRun, onCounted, onProgress }: FoldersOptions,
): Promise<RebuiltFolders> {
  const tally: Tally = { recorded: 0, known: 0, expired: 0, rejected: 0 }
  const problems: string[] = []
  let problemCount = 0
  const report = (problem: string) => {
    problemCount += 1
    if (problems.length < problemsKept) problems.push(problem)
  }
  const unreadable = new Set<string>()
  const unread = new Set<string>()
  const reportUnreadable = ({ account_id, target: { id, bucket } }: MarkerFolder, error: unknown) => {
    unreadable.add(id)
    unread.add(account_id)
    report(`reading bucket ${bucket} failed: ${errorMessage(error)}`)
  }
  // The other folders of the bucket may be whole.
  const reportEmpty = ({ account_id, endpoint_id, target: { bucket } }: MarkerFolder) => {
    unread.add(account_id)
    report(`bucket ${bucket} has no marker of endpoint ${endpoint_id}, which delivered to it: is its disk mounted?`)
  }
  const counted: { readonly folder: MarkerFolder; readonly markers: number }[] = []
  for (const folder of folders) {
    onProgress(0)
    // A bucket that failed for one endpoint would fail for the others.
    if (unreadable.has(folder.target.id)) continue
    try {
      const markers = await countMarkers(stores.open(folder.target), folder)
      if (markers > 0) counted.push({ folder, markers })
      else if (await hasCommitsIn(store.db, folder)) reportEmpty(folder)
    } catch (error) {
      reportUnreadable(folder, error)
    }
  }
  onCounted(counted.reduce((sum, { markers }) => sum + markers, 0))
  for (const { folder } of counted) {
    const { bucket, id } = folder.target
    onProgress(0)
    if (unreadable.has(id)) continue
    try {
      await rebuildFolder(stores.open(folder.target), folder, tally, {
        ...{ store, now, keptMs, dryRun, onProgress },
        onRejected: (key, reason) => report(`${bucket}/${key}: ${reason}`),
      })
    } catch (error) {
      reportUnreadable(folder, error)
    }
  }
  return { tally, problems, problemCount, unread: [...unread] }
}
