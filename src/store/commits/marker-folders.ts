/** Queries for rebuilding commits from buckets: the folders of markers, and the commits already recorded. */
import { ArtifactFiles } from '#model/commit.ts'
import type { DestinationTarget } from '#model/destination.ts'
import { toAccess } from '../endpoints/destinations.ts'
import type { Db } from '../store.ts'

/** An endpoint and a destination of its account. The endpoint may have delivered to any of them. */
export type MarkerFolder = { readonly account_id: string; readonly endpoint_id: string; readonly target: DestinationTarget }

export type MarkerFolderFilter = {
  readonly endpoint_id?: string | undefined
  readonly destination_id?: string | undefined
  readonly region?: string | undefined
}

/** Includes deleted endpoints: their DLQ files and metrics remain visible. */
export async function listMarkerFolders(
  db: Db,
  { endpoint_id, destination_id, region }: MarkerFolderFilter,
): Promise<readonly MarkerFolder[]> {
  let query = db
    .selectFrom('endpoints')
    .innerJoin('destinations', 'destinations.account_id', 'endpoints.account_id')
    .innerJoin('accounts', 'accounts.id', 'endpoints.account_id')
    .select(['endpoints.account_id', 'endpoints.id as endpoint_id', 'destinations.id', 'bucket', 'prefix', 'destinations.region'])
    .select([
      'role_arn',
      'accounts.external_id',
      'accounts.allowed_buckets',
      'encryption',
      'kms_key_arn',
      'checksums',
      'path_style',
    ])
  if (endpoint_id !== undefined) query = query.where('endpoints.id', '=', endpoint_id)
  if (destination_id !== undefined) query = query.where('destinations.id', '=', destination_id)
  if (region !== undefined) query = query.where('endpoints.region', '=', region)
  const rows = await query.orderBy('destinations.id').orderBy('endpoints.created_at').orderBy('endpoints.id').execute()
  return rows.map(({ account_id, endpoint_id, id, bucket, prefix, region, ...access }) => ({
    account_id,
    endpoint_id,
    target: { id, bucket, prefix, region, ...toAccess(access) },
  }))
}

/** Returns whether the newest commit to this place, if there is one, should have a marker in the folder. */
export async function hasCommitsIn(db: Db, { endpoint_id, target: { id, bucket, prefix } }: MarkerFolder): Promise<boolean> {
  const row = await db
    .selectFrom('commits')
    .select('artifacts')
    .where(({ and }) => and({ endpoint_id, destination_id: id, bucket }))
    .orderBy('uploaded_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (row === undefined) return false
  // The prefix of a destination may have changed since.
  return Object.values(ArtifactFiles.parse(JSON.parse(row.artifacts))).some(({ key }) => key.startsWith(prefix))
}

/** Returns the ids that are recorded commits. */
export async function listKnownCommits(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db.selectFrom('commits').select('id').where('id', 'in', ids).execute()
  return new Set(rows.map(({ id }) => id))
}

/** Returns the views that belong to another account. Unknown views are not included: they were lost with their commits. */
export async function listViewsOfOthers(db: Db, account_id: string, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return []
  const rows = await db.selectFrom('views').select('id').where('id', 'in', ids).where('account_id', '<>', account_id).execute()
  return rows.map(({ id }) => id)
}
