/**
 * Records a compaction that the database lost, from its marker.
 *
 * Law: the customer may store anything in the bucket. A marker is accepted only if it moves files that commits of this endpoint list, in full,
 * one after the other, to the file that a node would have made. It displaces compactions of these files that were only planned: no node
 * publishes them any more, because each looks for such a marker first.
 */
import { decodeCompactionMarker } from '#delivery/jobs/compaction-marker.ts'
import { compactionMarkerKey, isCompactedKey, parseArtifactKind, parseCompactionMarkerKey } from '#model/artifact.ts'
import type { CompactionMarker } from '#model/compaction.ts'
import { lockCommits } from '#store/commits/commits.ts'
import type { MarkerFolder } from '#store/commits/marker-folders.ts'
import {
  type CommitToCompact,
  displacePlanned,
  findCompaction,
  findUnmergedCommits,
  insertCompaction,
  type NewCompaction,
  type PlannedSource,
  publishCompaction,
} from '#store/jobs/compactions.ts'
import { readConsistently, type Store, type Tx, transact } from '#store/store.ts'
import type { Outcome, Rejected } from './found-marker.ts'

export type RebuildCompactionOptions = {
  readonly store: Store
  readonly now: () => number
  /** How long commits are kept. */
  readonly keptMs: number
  readonly dryRun: boolean
}

export async function rebuildCompaction(
  key: string,
  body: Uint8Array,
  folder: MarkerFolder,
  options: RebuildCompactionOptions,
): Promise<Outcome> {
  const marker = readCompactionMarker(key, body, folder)
  if ('rejected' in marker) return marker
  const { store, dryRun } = options
  if (dryRun) return readConsistently(store, (db) => record(db, marker, folder, options))
  return transact(store, async (db) => {
    // Another rebuild may be at the same marker: control begins one by itself.
    await lockCommits(db, folder.endpoint_id)
    return record(db, marker, folder, options)
  })
}

type FoundCompaction = CompactionMarker & { readonly date: string }

function readCompactionMarker(key: string, body: Uint8Array, { endpoint_id, target }: MarkerFolder): FoundCompaction | Rejected {
  const marker = decodeCompactionMarker(body)
  const name = parseCompactionMarkerKey(key)
  const kind = parseArtifactKind(marker?.compacted.kind ?? '')
  if (marker === undefined || name === undefined || kind === undefined) return { rejected: 'damaged, or not a marker of Inlet' }
  const place = { prefix: target.prefix, endpointId: endpoint_id, date: name.date }
  const file = marker.compacted
  if (marker.endpoint_id !== endpoint_id) return { rejected: `it belongs to another endpoint, ${marker.endpoint_id}` }
  if (marker.id !== name.id || key !== compactionMarkerKey(place, marker.id)) return { rejected: 'its id does not match its key' }
  if (marker.destination.bucket !== target.bucket)
    return { rejected: `it belongs to another bucket, ${marker.destination.bucket}` }
  if (!isCompactedKey(file.key, place, kind, { id: marker.id, sha256: file.sha256 }))
    return { rejected: `${file.key} is not its file` }
  return { ...marker, date: name.date }
}

async function record(
  db: Tx,
  { id, compacted, compacted_at, date, destination }: FoundCompaction,
  { account_id, endpoint_id, target }: MarkerFolder,
  { now, keptMs, dryRun }: RebuildCompactionOptions,
): Promise<Outcome> {
  const { kind, sources, ...file } = compacted
  const publishedAt = Math.min(Date.parse(compacted_at), now())
  const known = await findCompaction(db, id)
  if (known?.file) return 'known'
  if (known === undefined) {
    const ids = sources.map((source) => commitOf(source.id))
    const found = await findUnmergedCommits(db, endpoint_id, ids)
    if (found.length < new Set(ids).size)
      return publishedAt < now() - keptMs || dryRun ? 'expired' : { rejected: 'commits of its files are not in the database' }
    const planned = planSources(compacted, found)
    if ('rejected' in planned) return planned
    if (dryRun) return 'recorded'
    const { bucket, prefix } = target
    const where = { endpoint_id, kind, date, destination_id: destination.id, bucket, region: destination.region, prefix }
    await displacePlanned(db, kind, [...new Set(ids)])
    await insertCompaction(db, account_id, { ...where, ...planned, id }, publishedAt)
  }
  // Whether its sources were removed is not in the bucket's markers.
  if (!dryRun) await publishCompaction(db, id, { file, now: publishedAt, removing_since: now() })
  return 'recorded'
}

/** Returns the sources as a node would have planned them, or why these files cannot have become this one. */
function planSources(
  { kind, sources, rows }: CompactionMarker['compacted'],
  found: readonly CommitToCompact[],
): Pick<NewCompaction, 'sources' | 'view'> | Rejected {
  const commits = new Map(found.map((commit) => [commit.id, commit]))
  const planned: PlannedSource[] = []
  let view: NewCompaction['view'] = null
  let first_row = 0
  for (const source of sources) {
    const commit_id = commitOf(source.id)
    const file = commits.get(commit_id)?.files.find((listed) => listed.kind === kind && listed.marker_id === source.id)
    if (file === undefined) return { rejected: `${source.id} lists no such file, or another compaction has moved it` }
    const { rows, bytes, sha256, view_id, view_version } = file.artifact
    if (source.rows !== rows || source.first_row !== first_row) return { rejected: `it does not move all rows of ${source.id}` }
    if (planned.length === 0 && view_id !== undefined && view_version !== undefined) view = { id: view_id, version: view_version }
    planned.push({ commit_id, marker_id: source.id, first_row, rows, bytes, sha256 })
    first_row += rows
  }
  if (rows !== first_row) return { rejected: 'its file has other rows than its sources' }
  return { sources: planned, view }
}

/** The marker of an addition has the id of its commit, and more. */
function commitOf(markerId: string): string {
  return markerId.split('.')[0] ?? markerId
}
