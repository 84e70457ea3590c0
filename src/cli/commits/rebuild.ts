/**
 * Makes the commits of a database anew from the markers in the buckets.
 *
 * Owns: going through the places, what is taken and what is refused. Does not own: what a commit leaves in the database (the store).
 * Law: a commit that is known is not touched, so a second run changes nothing, and one that was cut short is gone on with.
 */
import { setImmediate } from 'node:timers/promises'
import { markerBytesMax } from '#delivery/commit/marker.ts'
import type { UnitMarker } from '#delivery/jobs/unit-marker.ts'
import { markerFolder, parseMarkerKey } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { findCommit, insertAddition } from '#store/commit-additions.ts'
import { type CommitPlace, listKnownCommits, listViewsOfOthers } from '#store/commit-places.ts'
import { restoreCommit } from '#store/commits.ts'
import { findDestination } from '#store/destinations.ts'
import { type Store, transact } from '#store/store.ts'
import { type FoundMarker, readMarker } from './found-marker.ts'

/** Markers that are looked up, read and recorded together. */
const batchMarkers = 200
/** Markers that are read at the same time. */
const readsParallel = 16
/** In the place of a job's id: which job it was is not in the marker. */
const unknownJob = 'rebuilt'

export type RebuildOptions = {
  readonly store: Store
  readonly now: () => number
  /** Looks, and writes nothing. */
  readonly dryRun: boolean
  /** Markers gone through since the last call. */
  readonly onProgress: (markers: number) => void
  /** A marker that was not taken. */
  readonly onRefused: (key: string, reason: string) => void
}

export type Tally = { recorded: number; known: number; refused: number }

type Entry = { readonly key: string; readonly bytes: number; readonly commitId: string; readonly isAddition: boolean }

/** How many markers lie there. Throws what the bucket says. */
export async function countMarkers(store: ObjectStore, place: CommitPlace): Promise<number> {
  let count = 0
  for await (const _ of store.list(markerFolder(place.target.prefix, place.endpoint_id))) count += 1
  return count
}

/** Adds to the tally. Throws what the bucket says; then everything before is recorded. */
export async function rebuildPlace(store: ObjectStore, place: CommitPlace, tally: Tally, options: RebuildOptions): Promise<void> {
  // Those of jobs come after their segments, whose names they sort beside.
  for (const wantsAdditions of [false, true]) {
    let batch: Entry[] = []
    for await (const { key, bytes } of store.list(markerFolder(place.target.prefix, place.endpoint_id))) {
      const marker = parseMarkerKey(key)
      const isAddition = marker?.kind.type === 'addition-marker'
      if (marker === undefined) {
        if (wantsAdditions) continue
        refuse(tally, options, key, 'its name is none that a marker has')
        options.onProgress(1)
      } else if (isAddition === wantsAdditions) {
        batch.push({ key, bytes, commitId: marker.commitId, isAddition })
        if (batch.length === batchMarkers) {
          await rebuildBatch(store, place, batch, tally, options)
          batch = []
        }
      }
    }
    await rebuildBatch(store, place, batch, tally, options)
  }
}

async function rebuildBatch(
  store: ObjectStore,
  place: CommitPlace,
  batch: readonly Entry[],
  tally: Tally,
  options: RebuildOptions,
): Promise<void> {
  const known = await listKnownCommits(
    options.store.db,
    batch.map(({ commitId }) => commitId),
  )
  // Of an addition only its marker says which view it is of.
  const unread = batch.filter(({ commitId, isAddition }) => isAddition || !known.has(commitId))
  tally.known += batch.length - unread.length
  options.onProgress(batch.length - unread.length)
  for (let at = 0; at < unread.length; at += readsParallel) {
    const entries = unread.slice(at, at + readsParallel)
    const markers = await Promise.all(entries.map((entry) => read(store, place, entry)))
    for (const [index, { key }] of entries.entries()) {
      const marker = markers[index] ?? { refused: 'it was not read' }
      const result = 'refused' in marker ? marker : await take(marker, place, options)
      if (typeof result === 'string') tally[result === 'new' ? 'recorded' : 'known'] += 1
      else refuse(tally, options, key, result.refused)
    }
    options.onProgress(entries.length)
    await setImmediate()
  }
}

async function read(
  store: ObjectStore,
  place: CommitPlace,
  { key, bytes }: Entry,
): Promise<FoundMarker | { readonly refused: string }> {
  if (bytes > markerBytesMax) return { refused: `${bytes} bytes are too many for a marker` }
  const body = await store.get(key)
  return body === undefined ? { refused: 'it is gone' } : readMarker(key, body, place)
}

type Taken = 'new' | 'known' | { readonly refused: string }

async function take(marker: FoundMarker, place: CommitPlace, options: RebuildOptions): Promise<Taken> {
  const { views, artifacts } = marker.kind === 'segment' ? marker.commit : marker.addition
  const viewIds = [...views, ...Object.values(artifacts)].flatMap(({ view_id }) => (view_id === undefined ? [] : [view_id]))
  const foreign = await listViewsOfOthers(options.store.db, place.account_id, viewIds)
  if (foreign.length > 0) return { refused: `it names a view of another account, ${foreign[0]}` }
  return marker.kind === 'segment' ? takeCommit(marker.commit, place, options) : takeAddition(marker.addition, options)
}

async function takeCommit(marker: SegmentCommit, place: CommitPlace, { store, now, dryRun }: RebuildOptions): Promise<Taken> {
  if (dryRun) return 'new'
  // A clock that was ahead must not push the commits to come into the future.
  const madeAt = Math.min(Date.parse(marker.uploaded_at), now())
  const commit = { ...marker, destination: await destinationOf(marker, place, store) }
  return transact(store, (db) => restoreCommit(db, commit, madeAt))
}

async function takeAddition(marker: UnitMarker, { store, now, dryRun }: RebuildOptions): Promise<Taken> {
  const commit = await findCommit(store.db, marker.commit_id)
  // In a dry run it may be of a commit that would have been recorded before.
  if (commit === undefined) return dryRun ? 'new' : { refused: 'the segment that it adds to has no commit' }
  const view_id = marker.views[0]?.view_id
  if (view_id === undefined) return { refused: 'it says nothing of a view' }
  if (commit.added.includes(view_id)) return 'known'
  if (Object.values(commit.artifacts).some((artifact) => artifact.view_id === view_id)) {
    return { refused: 'the segment has an output of that view version already' }
  }
  if (dryRun) return 'new'
  const addition = { commit, view_id, job_id: unknownJob, artifacts: marker.artifacts }
  const isNew = await transact(store, (db) => insertAddition(db, addition, Math.min(Date.parse(marker.uploaded_at), now())))
  return isNew ? 'new' : 'known'
}

/** The one that it was delivered to. Where that is gone, the one that it was found through reaches it too. */
async function destinationOf(
  { destination }: SegmentCommit,
  { account_id, target }: CommitPlace,
  { db }: Store,
): Promise<SegmentCommit['destination']> {
  const delivered = await findDestination(db, account_id, destination.id)
  return delivered === undefined ? { id: target.id, bucket: target.bucket, region: target.region } : destination
}

function refuse(tally: Tally, { onRefused }: RebuildOptions, key: string, reason: string): void {
  tally.refused += 1
  onRefused(key, reason)
}
