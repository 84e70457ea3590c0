/** Queries for rebuilding commits from buckets: the folders of markers, and the commits already recorded. */
import { prefixOf } from '#model/artifact.ts'
import { ArtifactFiles } from '#model/commit.ts'
import type { DestinationTarget } from '#model/destination.ts'
import { toAccess } from '../endpoints/destinations.ts'
import { listFormerPlaces } from '../endpoints/former-places.ts'
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
  return prefixOfCommit(row.artifacts, endpoint_id) === prefix
}

/** A place that an endpoint delivered to. */
export type DeliveryPlace = {
  readonly destination_id: string
  readonly bucket: string
  readonly prefix: string
  /** Region of the bucket. */
  readonly region: string
}

/**
 * Returns where these nodes can have delivered of an endpoint: its destination, those it had until `since` (epoch ms) or later, and where their last
 * commits are. `gone`: places that no destination of the account reaches any more.
 */
export async function listDeliveryFolders(
  db: Db,
  { account_id, endpoint_id }: Pick<MarkerFolder, 'account_id' | 'endpoint_id'>,
  nodes: Iterable<string>,
  since: number,
): Promise<{ readonly folders: readonly MarkerFolder[]; readonly gone: readonly DeliveryPlace[] }> {
  const reachable = await listMarkerFolders(db, { endpoint_id })
  const endpoint = await db.selectFrom('endpoints').select('destination_id').where('id', '=', endpoint_id).executeTakeFirst()
  const current = reachable.find(({ target }) => target.id === endpoint?.destination_id)?.target
  const places: DeliveryPlace[] = current === undefined ? [] : [{ ...current, destination_id: current.id }]
  places.push(...(await listFormerPlaces(db, endpoint_id, since)))
  for (const node_id of nodes) places.push(...(await findLastPlace(db, endpoint_id, node_id)))
  const folders: MarkerFolder[] = []
  const gone: DeliveryPlace[] = []
  const distinct = new Map(places.map((place) => [`${place.bucket}/${place.prefix}`, place]))
  for (const place of distinct.values()) {
    const target = findTarget(reachable, place)
    if (target === undefined) gone.push(place)
    else folders.push({ account_id, endpoint_id, target })
  }
  return { folders, gone }
}

/** Returns how a place can be read: by its own destination, or by another one with the same bucket. */
function findTarget(reachable: readonly MarkerFolder[], place: DeliveryPlace): DestinationTarget | undefined {
  const { destination_id, bucket, prefix, region } = place
  const isOwn = ({ target }: MarkerFolder) => target.id === destination_id
  const inBucket = reachable.filter(({ target }) => target.bucket === bucket)
  const folder = inBucket.find(isOwn) ?? inBucket[0] ?? reachable.find(isOwn)
  return folder && { ...folder.target, bucket, prefix, region }
}

/** Returns the folders of `listMarkerFolders`, and those under other prefixes of these buckets that endpoints delivered to before. */
export async function listAllMarkerFolders(db: Db, filter: MarkerFolderFilter): Promise<readonly MarkerFolder[]> {
  const folders = await listMarkerFolders(db, filter)
  const { endpoint_id, destination_id, region } = filter
  const formers = await db
    .selectFrom('former_places')
    .innerJoin('endpoints', 'endpoints.id', 'former_places.endpoint_id')
    .selectAll('former_places')
    .select('endpoints.account_id')
    .$if(endpoint_id !== undefined, (query) => query.where('endpoints.id', '=', endpoint_id ?? ''))
    .$if(destination_id !== undefined, (query) => query.where('former_places.destination_id', '=', destination_id ?? ''))
    .$if(region !== undefined, (query) => query.where('endpoints.region', '=', region ?? ''))
    .orderBy('former_places.endpoint_id')
    .orderBy('replaced_at')
    .execute()
  if (formers.length === 0) return folders
  const byEndpoint = Map.groupBy(folders, (folder) => folder.endpoint_id)
  const all = new Map(folders.map((folder) => [placeOf(folder), folder]))
  for (const { account_id, endpoint_id, ...place } of formers) {
    const inBucket = byEndpoint.get(endpoint_id)?.filter((reachable) => reachable.target.bucket === place.bucket)
    const target = findTarget(inBucket ?? [], place)
    const folder = target && { account_id, endpoint_id, target }
    if (folder !== undefined && !all.has(placeOf(folder))) all.set(placeOf(folder), folder)
  }
  return [...all.values()]
}

function placeOf({ endpoint_id, target: { id, bucket, prefix } }: MarkerFolder): string {
  return `${endpoint_id} ${id} ${bucket}/${prefix}`
}

/** Returns where the last commit of a node is, if there is one. */
async function findLastPlace(db: Db, endpoint_id: string, node_id: string): Promise<readonly DeliveryPlace[]> {
  const rows = await db
    .selectFrom('commits')
    .select(['destination_id', 'bucket', 'region', 'artifacts'])
    .where(({ and }) => and({ endpoint_id, node_id }))
    .orderBy('seq', 'desc')
    .limit(1)
    .execute()
  return rows.flatMap(({ artifacts, ...place }) => {
    const prefix = prefixOfCommit(artifacts, endpoint_id)
    return prefix === undefined ? [] : [{ ...place, prefix }]
  })
}

/** Returns undefined for a commit without files. */
function prefixOfCommit(artifacts: string, endpoint_id: string): string | undefined {
  const [file] = Object.values(ArtifactFiles.parse(JSON.parse(artifacts)))
  return file === undefined ? undefined : prefixOf(file.key, endpoint_id)
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
