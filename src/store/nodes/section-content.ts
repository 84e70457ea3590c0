/**
 * Reads the content of snapshot sections, by shard.
 *
 * Law: read content and versions in one `readConsistently`. Otherwise a section could be sent with the version of other content.
 */
import type { z } from 'zod'
import type { Keyring } from '#lib/keyring.ts'
import type { RevokedKey, Scope } from '#model/api-key.ts'
import { type Definition, type SentView, toSentView } from '#model/definition.ts'
import type { DestinationTarget } from '#model/destination.ts'
import type { NodeQuotas, Quotas } from '#model/quota.ts'
import { mayNeedSecrets } from '#model/secret.ts'
import type { BindingSection, KeySection, ShadowSection } from '#model/snapshot-sections.ts'
import { quotasOf } from '../accounts/accounts.ts'
import { toRevokedKey } from '../accounts/api-keys.ts'
import { selectValuesOfViews, toValues } from '../accounts/secrets.ts'
import { isNeededByNodes, shard } from '../cluster/section-versions.ts'
import { fromJson, fromJsonOrNull, toTime, toTimeOrNull } from '../columns.ts'
import { toAccess } from '../endpoints/destinations.ts'
import { type StoredEndpoint, toStoredEndpoint } from '../endpoints/endpoints.ts'
import type { Db } from '../store.ts'

type Binding = z.infer<typeof BindingSection>
type SentShadow = z.infer<typeof ShadowSection>

/** An endpoint with everything that a node needs to serve it. */
export type RegionEndpoint = StoredEndpoint & {
  readonly account_weight: number
  readonly account_quotas: NodeQuotas
  readonly destination: DestinationTarget | null
  /** The bindings that nodes need, oldest first. */
  readonly bindings: readonly Binding[]
  readonly shadows: readonly SentShadow[]
}

export type RegionKeys = {
  readonly keys: readonly z.infer<typeof KeySection>[]
  readonly revoked_keys: readonly RevokedKey[]
}

/** Returns keys of accounts with an endpoint in the region: active ones, and those revoked, or with their access ended, at `revokedSince` (epoch ms) or later. */
export async function listRegionKeys(
  db: Db,
  region: string,
  shards: readonly string[],
  revokedSince: number,
): Promise<ReadonlyMap<string, RegionKeys>> {
  const rows = await db
    .selectFrom('api_keys')
    .select(['id', 'account_id', 'name', 'hash', 'scopes', 'endpoint_ids', 'origins', 'revoked_at', 'access_ended_at'])
    .where(shard('id'), 'in', shards)
    .where(({ eb, or }) =>
      or([eb('revoked_at', 'is', null), eb('revoked_at', '>=', revokedSince), eb('access_ended_at', '>=', revokedSince)]),
    )
    .where('account_id', 'in', ({ selectFrom }) =>
      selectFrom('endpoints').select('account_id').where('region', '=', region).where('deleted_at', 'is', null),
    )
    .orderBy('id')
    .execute()
  return groupByShard(
    rows,
    ({ id }) => id,
    shards,
    (some) => ({
      keys: some.flatMap(({ revoked_at, access_ended_at: _, scopes, endpoint_ids, origins, ...key }) =>
        revoked_at === null
          ? [
              {
                ...key,
                scopes: fromJson<Scope[]>(scopes),
                endpoint_ids: fromJsonOrNull<string[]>(endpoint_ids),
                origins: fromJsonOrNull<string[]>(origins),
              },
            ]
          : [],
      ),
      revoked_keys: some.flatMap((row) => (row.revoked_at === null ? [] : [{ ...toRevokedKey(row), name: row.name }])),
    }),
  )
}

export async function listRegionEndpoints(
  db: Db,
  region: string,
  shards: readonly string[],
): Promise<ReadonlyMap<string, readonly RegionEndpoint[]>> {
  const rows = await db
    .selectFrom('endpoints')
    .innerJoin('accounts', 'accounts.id', 'endpoints.account_id')
    .leftJoin('destinations', 'destinations.id', 'endpoints.destination_id')
    .selectAll('endpoints')
    .select(['destinations.name as destination_name', 'destinations.status as destination_status'])
    .select(['destinations.bucket', 'destinations.prefix', 'destinations.region as bucket_region', 'destinations.role_arn'])
    .select(['destinations.encryption', 'destinations.kms_key_arn', 'destinations.checksums', 'destinations.path_style'])
    .select(['accounts.external_id', 'accounts.allowed_buckets', 'accounts.status as account_status'])
    .select(['accounts.weight as account_weight', 'accounts.quotas'])
    .where('endpoints.region', '=', region)
    .where('endpoints.deleted_at', 'is', null)
    .where(shard('endpoints.id'), 'in', shards)
    .orderBy('endpoints.id')
    .execute()
  const bindings = await listNeededBindings(db, region, shards)
  const shadows = await listSentShadows(db, region, shards)
  return groupByShard(
    rows,
    ({ id }) => id,
    shards,
    (some) =>
      some.map((row) => ({
        ...toStoredEndpoint(row),
        account_weight: row.account_weight,
        account_quotas: toNodeQuotas(quotasOf(row)),
        destination: toTarget(row),
        bindings: bindings.get(row.id) ?? [],
        shadows: shadows.get(row.id) ?? [],
      })),
  )
}

/** Returns the view versions whose bindings nodes of the region need, with their secrets. */
export async function listRegionViews(
  db: Db,
  region: string,
  shards: readonly string[],
  keyring: Keyring,
): Promise<ReadonlyMap<string, readonly SentView[]>> {
  const rows = await db
    .selectFrom('views')
    .select(['id', 'name', 'version', 'definition'])
    .where(shard('id'), 'in', shards)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('bindings')
          .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
          .select('bindings.id')
          .whereRef('bindings.view_id', '=', 'views.id')
          .where(isNeededByNodes)
          .where('endpoints.region', '=', region),
      ),
    )
    .orderBy('id')
    .execute()
  const views = rows.map((row) => ({ ...row, definition: fromJson<Definition>(row.definition) }))
  const needing = new Set(views.filter(({ definition }) => mayNeedSecrets(definition)).map(({ id }) => id))
  const stored =
    needing.size === 0 ? [] : await selectValuesOfViews(db).where(shard('view_secrets.view_id'), 'in', shards).execute()
  const secrets = Map.groupBy(
    stored.filter(({ view_id }) => needing.has(view_id)),
    ({ view_id }) => view_id,
  )
  return groupByShard(
    views,
    ({ id }) => id,
    shards,
    (some) => some.map((view) => toSentView(view, toValues(secrets.get(view.id) ?? [], keyring))),
  )
}

async function listNeededBindings(db: Db, region: string, shards: readonly string[]): Promise<ReadonlyMap<string, Binding[]>> {
  const rows = await db
    .selectFrom('endpoints')
    .innerJoin('bindings', 'bindings.endpoint_id', 'endpoints.id')
    .select(['bindings.endpoint_id', 'bindings.id as binding_id', 'bindings.view_id'])
    .select(['bindings.is_required', 'bindings.activated_at', 'bindings.deactivated_at', 'bindings.canary_start_ts'])
    .where('endpoints.region', '=', region)
    .where('endpoints.deleted_at', 'is', null)
    .where(shard('endpoints.id'), 'in', shards)
    .where(isNeededByNodes)
    .orderBy('bindings.activated_at')
    .orderBy('bindings.id')
    .execute()
  const byEndpoint = new Map<string, Binding[]>()
  for (const { endpoint_id, ...row } of rows) {
    const bindings = byEndpoint.get(endpoint_id) ?? []
    byEndpoint.set(endpoint_id, bindings)
    bindings.push({
      ...row,
      is_required: row.is_required === 1,
      activated_at: toTime(row.activated_at),
      deactivated_at: toTimeOrNull(row.deactivated_at),
      canary_start_ts: toTimeOrNull(row.canary_start_ts),
    })
  }
  return byEndpoint
}

async function listSentShadows(db: Db, region: string, shards: readonly string[]): Promise<ReadonlyMap<string, SentShadow[]>> {
  const rows = await db
    .selectFrom('endpoints')
    .innerJoin('shadows', 'shadows.endpoint_id', 'endpoints.id')
    .innerJoin('views', 'views.id', 'shadows.view_id')
    .select(['shadows.endpoint_id', 'shadows.id as shadow_id', 'shadows.started_at', 'shadows.definition'])
    .select(['views.id', 'views.name', 'views.version'])
    .where('endpoints.region', '=', region)
    .where('endpoints.deleted_at', 'is', null)
    .where(shard('endpoints.id'), 'in', shards)
    .orderBy('shadows.started_at')
    .orderBy('shadows.id')
    .execute()
  const byEndpoint = Map.groupBy(rows, ({ endpoint_id }) => endpoint_id)
  return new Map(
    [...byEndpoint].map(([id, some]) => [
      id,
      some.map(({ endpoint_id: _, started_at, definition, ...row }) =>
        toSentView({ ...row, activated_at: toTime(started_at), definition: fromJson<Definition>(definition) }),
      ),
    ]),
  )
}

/** Groups rows by shard. The result has every requested shard, including empty ones. */
function groupByShard<Row, Content>(
  rows: readonly Row[],
  idOf: (row: Row) => string,
  shards: readonly string[],
  toContent: (rows: readonly Row[]) => Content,
): ReadonlyMap<string, Content> {
  const groups = Map.groupBy(rows, (row) => idOf(row).slice(-2))
  return new Map(shards.map((name) => [name, toContent(groups.get(name) ?? [])]))
}

function toNodeQuotas({ bytes_per_day, records_per_second }: Quotas): NodeQuotas {
  return { bytes_per_day, records_per_second }
}

type TargetColumns = {
  destination_id: string | null
  bucket: string | null
  prefix: string | null
  bucket_region: string | null
  role_arn: string | null
  external_id: string
  allowed_buckets: string | null
  encryption: string | null
  kms_key_arn: string | null
  checksums: string | null
  path_style: number | null
}

function toTarget(row: TargetColumns): DestinationTarget | null {
  const { destination_id: id, bucket, prefix, bucket_region: region, role_arn, encryption, checksums, path_style } = row
  if (id === null || bucket === null || prefix === null || region === null) return null
  if (role_arn === null || encryption === null || checksums === null || path_style === null) return null
  return { id, bucket, prefix, region, ...toAccess({ ...row, role_arn, encryption, checksums, path_style }) }
}
