import type { Definition } from '#model/definition.ts'
import type { DestinationTarget } from '#model/destination.ts'
import type { BoundView } from '#model/snapshot.ts'
import { fromJson, toTimeOrNull } from './columns.ts'
import { type StoredEndpoint, toStoredEndpoint } from './endpoints.ts'
import type { Db } from './store.ts'

/** An endpoint with all that a node needs to serve it. */
export type RegionEndpoint = StoredEndpoint & {
  readonly destination: DestinationTarget | null
  /** The active bindings, oldest first. */
  readonly views: readonly BoundView[]
  /** The highest seq that is committed from the node that asks; -1 for none. */
  readonly committed_seq: number
}

/**
 * The endpoints of a region, by id, for one of its nodes. Several queries: read it and the epoch in one `readConsistently`,
 * or a node could take half a change for an epoch.
 */
export async function listRegionEndpoints(db: Db, region: string, node_id: string): Promise<readonly RegionEndpoint[]> {
  const rows = await db
    .selectFrom('endpoints')
    .innerJoin('accounts', 'accounts.id', 'endpoints.account_id')
    .leftJoin('destinations', 'destinations.id', 'endpoints.destination_id')
    .leftJoin('committed_seqs', (join) =>
      join.on('committed_seqs.node_id', '=', node_id).onRef('committed_seqs.endpoint_id', '=', 'endpoints.id'),
    )
    .selectAll('endpoints')
    .select(['destinations.name as destination_name', 'destinations.status as destination_status'])
    .select(['destinations.bucket', 'destinations.prefix', 'destinations.region as bucket_region', 'destinations.role_arn'])
    .select(['destinations.kms_key_arn', 'destinations.path_style', 'accounts.external_id', 'committed_seqs.seq'])
    .where('endpoints.region', '=', region)
    .where('endpoints.deleted_at', 'is', null)
    .orderBy('endpoints.id')
    .execute()
  const bound = await listBoundViews(db, region)
  return rows.map((row) => ({
    ...toStoredEndpoint(row),
    destination: toTarget(row),
    views: bound.get(row.id) ?? [],
    committed_seq: row.seq ?? -1,
  }))
}

async function listBoundViews(db: Db, region: string): Promise<ReadonlyMap<string, readonly BoundView[]>> {
  const rows = await db
    .selectFrom('bindings')
    .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
    .innerJoin('views', 'views.id', 'bindings.view_id')
    .select(['bindings.endpoint_id', 'bindings.id as binding_id', 'bindings.view_id', 'views.name', 'views.version'])
    .select(['bindings.is_required', 'bindings.canary_start_ts', 'views.definition'])
    .where('endpoints.region', '=', region)
    .where('endpoints.deleted_at', 'is', null)
    .where('bindings.deactivated_at', 'is', null)
    .orderBy('bindings.activated_at')
    .orderBy('bindings.id')
    .execute()
  // One view is often bound to many endpoints: its definition is parsed once.
  const definitions = new Map<string, Definition>()
  const byEndpoint = new Map<string, BoundView[]>()
  for (const { endpoint_id, definition: text, ...row } of rows) {
    const definition = definitions.get(row.view_id) ?? fromJson<Definition>(text)
    definitions.set(row.view_id, definition)
    const views = byEndpoint.get(endpoint_id) ?? []
    byEndpoint.set(endpoint_id, views)
    views.push({
      ...row,
      definition,
      is_required: row.is_required === 1,
      canary_start_ts: toTimeOrNull(row.canary_start_ts),
    })
  }
  return byEndpoint
}

type TargetColumns = {
  destination_id: string | null
  bucket: string | null
  prefix: string | null
  bucket_region: string | null
  role_arn: string | null
  external_id: string
  kms_key_arn: string | null
  path_style: number | null
}

function toTarget(row: TargetColumns): DestinationTarget | null {
  const { destination_id: id, bucket, prefix, bucket_region: region, role_arn, external_id, kms_key_arn, path_style } = row
  if (id === null || bucket === null || prefix === null || region === null || role_arn === null) return null
  return { id, bucket, prefix, region, role_arn, external_id, kms_key_arn, path_style: path_style === 1 }
}
