/**
 * Records lost commits again, from the markers in the buckets.
 *
 * Owns: reading the folders, accepting or rejecting each marker. Does not own: what a commit changes in the database (the store).
 * Law: a known commit is left unchanged. So a second run changes nothing, and an interrupted run can be resumed.
 */
import { setImmediate } from 'node:timers/promises'
import type { UnitMarker } from '#delivery/jobs/unit-marker.ts'
import { markerBytesMax } from '#delivery/publish/marker.ts'
import { markerFolder, parseCompactionMarkerKey, parseMarkerKey } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { findCommit, insertAddition } from '#store/commits/commit-additions.ts'
import { lockCommits, restoreCommit } from '#store/commits/commits.ts'
import { recoverLossBefore } from '#store/commits/losses.ts'
import { listKnownCommits, listViewsOfOthers, type MarkerFolder } from '#store/commits/marker-folders.ts'
import { findDestination } from '#store/endpoints/destinations.ts'
import { findVersionId } from '#store/endpoints/views.ts'
import { type Store, transact } from '#store/store.ts'
import { type FoundMarker, type Outcome, type Rejected, readMarker } from './found-marker.ts'
import { rebuildCompaction } from './rebuild-compaction.ts'

/** Markers per database lookup. */
export const batchMarkers = 200
/** Markers to read in parallel. */
const readsParallel = 16
/** Used as the job id: the marker does not name the job. */
const unknownJob = 'rebuilt'

export type RebuildOptions = {
  readonly store: Store
  readonly now: () => number
  /** How long commits are kept: older ones are not restored, because their counters are still in the lifetime sums. */
  readonly keptMs: number
  /** Reads everything and writes nothing. */
  readonly dryRun: boolean
  /** Called with the number of markers processed since the last call. */
  readonly onProgress: (markers: number) => void
  /** Called for each rejected marker. */
  readonly onRejected: (key: string, reason: string) => void
  readonly signal?: AbortSignal
}

export type Tally = { recorded: number; known: number; expired: number; rejected: number }

export type Entry = { readonly key: string; readonly bytes: number; readonly commitId: string; readonly isAddition: boolean }

/** Returns the number of markers in the folder. Throws ObjectStoreError. */
export async function countMarkers(store: ObjectStore, folder: MarkerFolder): Promise<number> {
  let count = 0
  for await (const _ of store.list(markerFolder(folder.target.prefix, folder.endpoint_id))) count += 1
  return count
}

/** Rebuilds the commits of a folder and counts them in the tally. Throws ObjectStoreError; earlier markers stay recorded. */
export async function rebuildFolder(
  store: ObjectStore,
  folder: MarkerFolder,
  tally: Tally,
  options: RebuildOptions,
): Promise<void> {
  // Markers of jobs need the commit of their segment, so they are read in a second pass, and those of compactions, which need both, in a third.
  for (const wantsAdditions of [false, true]) {
    let batch: Entry[] = []
    for await (const { key, bytes } of store.list(markerFolder(folder.target.prefix, folder.endpoint_id))) {
      const marker = parseMarkerKey(key)
      const isAddition = marker?.kind.type === 'addition-marker'
      if (marker === undefined) {
        if (wantsAdditions || parseCompactionMarkerKey(key) !== undefined) continue
        reject(tally, options, key, 'not the name of a marker')
        options.onProgress(1)
      } else if (isAddition === wantsAdditions) {
        batch.push({ key, bytes, commitId: marker.commitId, isAddition })
        if (batch.length === batchMarkers) {
          await rebuildBatch(store, folder, batch, tally, options)
          batch = []
        }
      }
    }
    await rebuildBatch(store, folder, batch, tally, options)
  }
  for await (const { key, bytes } of store.list(markerFolder(folder.target.prefix, folder.endpoint_id))) {
    if (parseCompactionMarkerKey(key) === undefined) continue
    const body = bytes > markerBytesMax ? undefined : await store.get(key)
    const result =
      body === undefined
        ? { rejected: 'too large, or removed in the meantime' }
        : await rebuildCompaction(key, body, folder, options)
    if (typeof result === 'string') tally[result] += 1
    else reject(tally, options, key, result.rejected)
    options.onProgress(1)
  }
}

/** Records those of these markers that have no commit. Throws ObjectStoreError. */
export async function rebuildBatch(
  store: ObjectStore,
  folder: MarkerFolder,
  batch: readonly Entry[],
  tally: Tally,
  options: RebuildOptions,
): Promise<void> {
  const known = await listKnownCommits(
    options.store.db,
    batch.map(({ commitId }) => commitId),
  )
  // The key of an addition's marker does not identify its view, so the marker must be read.
  const unread = batch.filter(({ commitId, isAddition }) => isAddition || !known.has(commitId))
  tally.known += batch.length - unread.length
  options.onProgress(batch.length - unread.length)
  for (let at = 0; at < unread.length; at += readsParallel) {
    const entries = unread.slice(at, at + readsParallel)
    const markers = await Promise.all(entries.map((entry) => read(store, folder, entry, options)))
    for (const [index, { key }] of entries.entries()) {
      const marker = markers[index] ?? { rejected: 'not read' }
      const result = 'rejected' in marker ? marker : await record(marker, folder, options)
      if (typeof result === 'string') tally[result] += 1
      else reject(tally, options, key, result.rejected)
    }
    options.onProgress(entries.length)
    await setImmediate()
  }
}

async function read(
  store: ObjectStore,
  folder: MarkerFolder,
  { key, bytes }: Entry,
  { signal }: RebuildOptions,
): Promise<FoundMarker | Rejected> {
  if (bytes > markerBytesMax) return { rejected: `too large for a marker: ${bytes} bytes` }
  const body = await store.get(key, signal)
  return body === undefined ? { rejected: 'removed in the meantime' } : readMarker(key, body, folder)
}

async function record(marker: FoundMarker, folder: MarkerFolder, options: RebuildOptions): Promise<Outcome> {
  const { views, artifacts } = marker.type === 'segment' ? marker.commit : marker.addition
  const viewIds = [...views, ...Object.values(artifacts)].flatMap(({ view_id }) => (view_id === undefined ? [] : [view_id]))
  const foreign = await listViewsOfOthers(options.store.db, folder.account_id, viewIds)
  if (foreign.length > 0) return { rejected: `it belongs to a view of another account: ${foreign[0]}` }
  return marker.type === 'segment'
    ? recordCommit(marker.commit, folder, options)
    : recordAddition(marker.addition, folder, options)
}

async function recordCommit(
  marker: SegmentCommit,
  folder: MarkerFolder,
  { store, now, keptMs, dryRun }: RebuildOptions,
): Promise<Outcome> {
  // The node's clock may have been ahead. A time in the future would push the times of later commits into the future too.
  const committedAt = Math.min(Date.parse(marker.uploaded_at), now())
  if (committedAt < now() - keptMs) {
    if (!dryRun) await recoverLossBefore(store, marker, now())
    return 'expired'
  }
  if (dryRun) return 'recorded'
  const commit = { ...marker, destination: await chooseDestination(marker, folder, store) }
  const result = await transact(store, (db) => restoreCommit(db, commit, committedAt))
  return result === 'new' ? 'recorded' : result
}

async function recordAddition(
  marker: UnitMarker,
  { account_id }: MarkerFolder,
  { store, now, keptMs, dryRun }: RebuildOptions,
): Promise<Outcome> {
  const commit = await findCommit(store.db, marker.commit_id)
  if (commit === undefined && Date.parse(marker.sealed_at) < now() - keptMs) return 'expired'
  // In a dry run the commit of its segment may not be recorded yet.
  if (commit === undefined) return dryRun ? 'recorded' : { rejected: 'its segment has no commit' }
  const [outcome] = marker.views
  if (outcome === undefined) return { rejected: 'it does not name a view' }
  const { view_id, view_name } = outcome
  if (commit.added.includes(view_id)) return 'known'
  if (Object.values(commit.artifacts).some((artifact) => artifact.view_id === view_id)) {
    return { rejected: 'the segment already has output of that view version' }
  }
  if (dryRun) return 'recorded'
  const from_view_id =
    marker.from_version === null ? null : await findVersionId(store.db, account_id, view_name, marker.from_version)
  const addition = { commit, view_id, from_view_id, job_id: unknownJob, artifacts: marker.artifacts, outcome }
  const isNew = await transact(store, async (db) => {
    await lockCommits(db, commit.endpoint_id)
    return insertAddition(db, addition, Math.min(Date.parse(marker.uploaded_at), now()))
  })
  return isNew ? 'recorded' : 'known'
}

/** Returns the destination of the commit. If it was deleted, returns the one through which the marker was found. */
async function chooseDestination(
  { destination }: SegmentCommit,
  { account_id, target }: MarkerFolder,
  { db }: Store,
): Promise<SegmentCommit['destination']> {
  const delivered = await findDestination(db, account_id, destination.id)
  return delivered === undefined ? { id: target.id, bucket: target.bucket, region: target.region } : destination
}

function reject(tally: Tally, { onRejected }: RebuildOptions, key: string, reason: string): void {
  tally.rejected += 1
  onRejected(key, reason)
}
