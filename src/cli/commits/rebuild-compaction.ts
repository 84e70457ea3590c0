/**
 * Records a compaction that the database lost, from its marker.
 *
 * Law: the customer may store anything in the bucket. A marker is accepted only if it moves files that commits of this endpoint list, in full,
 * one after the other, to the file that a node would have made. It displaces compactions of these files that were only planned: no node
 * publishes them any more, because each looks for such a marker first.
 */
import { decodeCompactionMarker } from '#delivery/jobs/compaction-marker.ts'
import { compactionMarkerKey, isCompactedKey, parseArtifactKind, parseCompactionMarkerKey } from '#model/artifact.ts'
import type { MarkerFolder } from '#store/commits/marker-folders.ts'
import {
  displacePlanned,
  findCompaction,
  findUnmergedCommits,
  insertCompaction,
  type PlannedSource,
  publishCompaction,
} from '#store/jobs/compactions.ts'
import { type Store, transact } from '#store/store.ts'
import type { Rejected } from './found-marker.ts'

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
  { store, now, keptMs, dryRun }: RebuildCompactionOptions,
): Promise<'recorded' | 'known' | 'expired' | Rejected> {
  const marker = decodeCompactionMarker(body)
  const name = parseCompactionMarkerKey(key)
  const kind = parseArtifactKind(marker?.compacted.kind ?? '')
  if (marker === undefined || name === undefined || kind === undefined) return { rejected: 'damaged, or not a marker of Inlet' }
  const { endpoint_id } = folder
  const { prefix, bucket } = folder.target
  const place = { prefix, endpointId: endpoint_id, date: name.date }
  const { kind: of, sources, ...file } = marker.compacted
  if (marker.endpoint_id !== endpoint_id) return { rejected: `it belongs to another endpoint, ${marker.endpoint_id}` }
  if (marker.id !== name.id || key !== compactionMarkerKey(place, marker.id)) return { rejected: 'its id does not match its key' }
  if (marker.destination.bucket !== bucket) return { rejected: `it belongs to another bucket, ${marker.destination.bucket}` }
  if (!isCompactedKey(file.key, place, kind, { id: marker.id, sha256: file.sha256 }))
    return { rejected: `${file.key} is not its file` }
  const known = await findCompaction(store.db, marker.id)
  if (known?.file) return 'known'
  const publishedAt = Math.min(Date.parse(marker.compacted_at), now())
  // Whether its sources were removed is not in the bucket's markers.
  const publication = { file, now: publishedAt, removing_since: now() }
  if (known !== undefined) {
    if (!dryRun) await transact(store, (db) => publishCompaction(db, marker.id, publication))
    return 'recorded'
  }
  const ids = sources.map(({ id }) => id.split('.')[0] ?? id)
  const commits = new Map((await findUnmergedCommits(store.db, endpoint_id, ids)).map((commit) => [commit.id, commit]))
  if (commits.size < new Set(ids).size)
    return publishedAt < now() - keptMs || dryRun ? 'expired' : { rejected: 'commits of its files are not in the database' }
  const planned: PlannedSource[] = []
  let firstRow = 0
  for (const source of sources) {
    const commit_id = source.id.split('.')[0] ?? source.id
    const found = commits.get(commit_id)?.files.find((listed) => listed.kind === of && listed.marker_id === source.id)
    if (found === undefined) return { rejected: `${source.id} lists no such file, or another compaction has moved it` }
    const { rows, bytes, sha256 } = found.artifact
    if (source.rows !== rows || source.first_row !== firstRow) return { rejected: `it does not move all rows of ${source.id}` }
    planned.push({ commit_id, marker_id: source.id, first_row: firstRow, rows, bytes, sha256 })
    firstRow += rows
  }
  if (file.rows !== firstRow) return { rejected: 'its file has other rows than its sources' }
  if (dryRun) return 'recorded'
  const { view_id, view_version } =
    commits.get(planned[0]?.commit_id ?? '')?.files.find((listed) => listed.kind === of)?.artifact ?? {}
  const view = view_id === undefined || view_version === undefined ? null : { id: view_id, version: view_version }
  const { id: destination_id, region } = marker.destination
  const where = { endpoint_id, kind: of, view, date: name.date, destination_id, bucket, region, prefix }
  await transact(store, async (db) => {
    await displacePlanned(db, of, [...commits.keys()])
    await insertCompaction(db, folder.account_id, { ...where, id: marker.id, sources: planned }, publishedAt)
    await publishCompaction(db, marker.id, publication)
  })
  return 'recorded'
}
