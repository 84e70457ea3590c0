/**
 * Commits with the files that must be in the buckets now, for the scrub.
 *
 * Law: a file whose removal by a compaction has begun is left out, because it may be gone at any time. The merged file stands in for it.
 */
import { compactionMarkerKey } from '#model/artifact.ts'
import type { ArtifactFile, ArtifactFiles } from '#model/commit.ts'
import type { DestinationTarget } from '#model/destination.ts'
import type { CommitToScrub, EndpointToScrub, MergedFile } from '#model/scrub.ts'
import { fromJson, fromTime, toTime } from '../columns.ts'
import { listAddedArtifacts } from '../commits/commit-additions.ts'
import { listKnownCommits, listMarkerFolders } from '../commits/marker-folders.ts'
import { findDestinationTarget } from '../endpoints/destinations.ts'
import { countRows } from '../page.ts'
import type { Db } from '../store.ts'
import { listSources } from './compactions.ts'

/** Returns ids of endpoints, deleted ones included, in order, from after `after` on; those of a region, or of all. */
export async function listEndpointsToScrub(
  db: Db,
  { after, region, limit }: { readonly after: string | null; readonly region?: string; readonly limit: number },
): Promise<readonly { readonly id: string; readonly account_id: string }[]> {
  let query = db.selectFrom('endpoints').select(['id', 'account_id'])
  if (after !== null) query = query.where('id', '>', after)
  if (region !== undefined) query = query.where('region', '=', region)
  return query.orderBy('id').limit(limit).execute()
}

/** Returns an endpoint with every destination of its account. */
export async function withTargets(
  db: Db,
  endpoint: { readonly id: string; readonly account_id: string },
): Promise<EndpointToScrub> {
  const folders = await listMarkerFolders(db, { endpoint_id: endpoint.id })
  return { ...endpoint, targets: folders.map(({ target }) => target) }
}

/** Returns commits of an endpoint, oldest first, from after `after` on. The caller checks the account: commits do not store it. */
export async function listCommitsToScrub(
  db: Db,
  endpoint_id: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly CommitToScrub[]> {
  const rows = await db
    .selectFrom('commits')
    .select(['id', 'node_id', 'seq', 'sealed_at', 'uploaded_at', 'destination_id', 'bucket', 'region', 'artifacts'])
    .where('endpoint_id', '=', endpoint_id)
    .where('uploaded_at', '>', after === null ? -1 : fromTime(after))
    .orderBy('uploaded_at')
    .limit(limit)
    .execute()
  const ids = rows.map(({ id }) => id)
  const added = await listAddedArtifacts(db, ids)
  const { merged, removing } = await listMerged(db, ids)
  const targets = new Map<string, DestinationTarget | undefined>()
  for (const id of new Set(rows.map(({ destination_id }) => destination_id)))
    targets.set(id, (await findDestinationTarget(db, id))?.destination)
  return rows.map(({ id, node_id, seq, sealed_at, uploaded_at, destination_id, bucket, region, artifacts }) => {
    const files = Object.entries({ ...fromJson<ArtifactFiles>(artifacts), ...added.get(id) })
    const destination = targets.get(destination_id)
    return {
      ...{ id, node_id, seq, sealed_at: toTime(sealed_at), uploaded_at: toTime(uploaded_at) },
      // The destination may have moved to another bucket since.
      target: destination === undefined ? null : { ...destination, bucket, region },
      files: files.flatMap(([kind, { key, bytes, sha256 }]) =>
        removing.has(`${id} ${kind}`) ? [] : [{ kind, key, bytes, sha256 }],
      ),
      merged: merged.get(id) ?? [],
    }
  })
}

/** Returns the merged files by the commit that has their first rows, and which files of the commits may be gone. */
async function listMerged(db: Db, ids: readonly string[]) {
  const merged = new Map<string, MergedFile[]>()
  const removing = new Set<string>()
  if (ids.length === 0) return { merged, removing }
  const rows = await db
    .selectFrom('compacted_artifacts as source')
    .innerJoin('compactions', 'compactions.id', 'source.compaction_id')
    .select(['source.commit_id', 'source.kind', 'source.first_row', 'compactions.id', 'compactions.endpoint_id'])
    .select(['compactions.prefix', 'compactions.date', 'compactions.file', 'compactions.removing_since'])
    .where('source.commit_id', 'in', ids)
    .where('compactions.file', 'is not', null)
    .$narrowType<{ file: string }>()
    .execute()
  for (const { commit_id, kind, first_row, id, endpoint_id: endpointId, prefix, date, file, removing_since } of rows) {
    if (removing_since !== null) removing.add(`${commit_id} ${kind}`)
    if (first_row !== 0) continue
    const { key, bytes, sha256, rows } = fromJson<ArtifactFile>(file)
    const sources = (await listSources(db, id)).map(({ marker_id, first_row, rows }) => ({ id: marker_id, first_row, rows }))
    const marker_key = compactionMarkerKey({ prefix, endpointId, date }, id)
    merged.set(commit_id, [...(merged.get(commit_id) ?? []), { id, kind, key, bytes, sha256, rows, marker_key, sources }])
  }
  return { merged, removing }
}

export function countCommits(db: Db): Promise<number> {
  return countRows(db.selectFrom('commits'))
}

/** Returns those of the ids that are recorded commits, or compactions whose file is. */
export async function listKnownMarkers(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const compactions = await db
    .selectFrom('compactions')
    .select('id')
    .where('id', 'in', ids)
    .where('file', 'is not', null)
    .execute()
  return new Set([...(await listKnownCommits(db, ids)), ...compactions.map(({ id }) => id)])
}
