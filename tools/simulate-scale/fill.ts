/** Fills a database with the configuration of a large installation, by rows instead of by calls: that takes seconds. */
import { newApiKey, newExternalId } from '../../src/auth/secrets.ts'
import { newId, newLabel } from '../../src/model/id.ts'
import { inNewEpoch } from '../../src/store/cluster/epoch.ts'
import type { Db, Store } from '../../src/store/store.ts'

export type Filling = {
  readonly accounts: number
  readonly endpoints: number
  readonly keys: number
  /** An account has all of its endpoints in one of them. */
  readonly regions: readonly string[]
  /** Region of the buckets. */
  readonly destinationRegion?: string
  readonly segmentMaxAgeSeconds?: number
}

export type FilledEndpoint = {
  readonly id: string
  readonly account: string
  readonly region: string
  readonly destination: string
  readonly view: string
}

/** `apiKeys`: one of each account, in the order in which endpoints take their accounts. */
export type Filled = { readonly endpoints: readonly FilledEndpoint[]; readonly apiKeys: readonly string[] }

/** Columns of each view. */
export const columnNames = Array.from({ length: 10 }, (_, index) => `column_${index}`)

/** Creates the accounts with their keys, destinations, views and endpoints. */
export async function fill(store: Store, scale: Filling, progress: (what: string) => void): Promise<Filled> {
  const now = Date.now()
  const { regions, destinationRegion = 'eu-central-1', segmentMaxAgeSeconds = null } = scale
  const accounts = Array.from({ length: scale.accounts }, () => ({ id: newId(), destination: newId(), view: newId() }))
  const keys = Array.from({ length: scale.keys }, () => newApiKey())
  progress(`creating ${scale.accounts} accounts and ${scale.keys} keys`)
  await insertAll(store, 'accounts', accounts, ({ id }, index) => ({
    ...{ id, name: `account ${index}`, external_id: newExternalId(), status: 'active', weight: 1, quotas: null },
    created_at: now + index,
  }))
  await insertAll(store, 'destinations', accounts, ({ id, destination }) => ({
    ...{
      id: destination,
      account_id: id,
      name: 'lake',
      bucket: `lake-${newLabel(8)}`,
      prefix: 'raw/events',
      region: destinationRegion,
    },
    ...{
      role_arn: 'arn:aws:iam::123456789012:role/ingest',
      kms_key_arn: null,
      path_style: 0,
      status: 'valid',
      validated_at: now,
    },
    ...{ last_error: null, revision: 1, validation_claimed_at: null, created_at: now, updated_at: now },
  }))
  await insertAll(store, 'api_keys', keys, ({ prefix, hash }, index) => {
    const account_id = accounts[index % accounts.length]?.id ?? ''
    const scopes = JSON.stringify(index === 0 ? ['admin', 'ingest'] : ['ingest'])
    return { id: newId(), account_id, name: `key ${index}`, prefix, hash, scopes, created_at: now, revoked_at: null }
  })
  progress(`creating ${scale.endpoints} endpoints with a view each`)
  const columns = columnNames.map((name) => ({ name, type: 'VARCHAR', path: `$.${name}` }))
  await insertAll(store, 'views', accounts, ({ id, view }) => ({
    ...{
      id: view,
      account_id: id,
      name: 'events',
      version: 1,
      definition: JSON.stringify({ columns, filters: [] }),
      format: 'json',
    },
    ...{ status: 'published', description: '', tags: '[]', created_by: 'simulation', created_at: now, published_at: now },
  }))
  const endpoints = Array.from({ length: scale.endpoints }, (_, index): FilledEndpoint => {
    const { id: account = '', destination = '', view = '' } = accounts[index % accounts.length] ?? {}
    return { id: newId(), account, region: regions[(index % accounts.length) % regions.length] ?? '', destination, view }
  })
  await insertAll(store, 'endpoints', endpoints, ({ id, account, region, destination }) => {
    const label = newLabel(12)
    return {
      id,
      account_id: account,
      region,
      label,
      name: label,
      desired_state: 'active',
      segment_max_age_seconds: segmentMaxAgeSeconds,
      destination_id: destination,
      since_epoch: 1,
      provisioned_at: now,
      created_at: now,
    }
  })
  await insertAll(store, 'bindings', endpoints, ({ id, account, view }) => ({
    ...{ id: newId(), account_id: account, endpoint_id: id, view_id: view, is_required: 0, activated_at: now },
    activated_by: 'simulation',
  }))
  await inNewEpoch(store, (db) => touchEverything(db, regions))
  return { endpoints, apiKeys: keys.slice(0, accounts.length).map(({ secret }) => secret) }
}

/** Updates the sections, as changes of the API do, all at once: rows that were inserted in bulk touched none. */
async function touchEverything(db: Db, regions: readonly string[]): Promise<void> {
  const { version } = await db.selectFrom('epoch').select('version').executeTakeFirstOrThrow()
  const shards = Array.from({ length: 256 }, (_, shard) => shard.toString(16).padStart(2, '0'))
  const sections = ['keys', 'endpoints', 'views'].flatMap((kind) => shards.map((shard) => `${kind}/${shard}`))
  for (const region of regions)
    await db
      .insertInto('snapshot_sections')
      .values(sections.map((section) => ({ region, section, version })))
      .execute()
}

async function insertAll<T>(
  { db }: Store,
  table: 'accounts' | 'destinations' | 'api_keys' | 'views' | 'endpoints' | 'bindings',
  items: readonly T[],
  toRow: (item: T, index: number) => Readonly<Record<string, unknown>>,
): Promise<void> {
  const rowsAtOnce = 1_000
  const rows = items.map(toRow)
  for (let at = 0; at < rows.length; at += rowsAtOnce) {
    await db
      .insertInto(table)
      .values(rows.slice(at, at + rowsAtOnce) as never)
      .execute()
  }
}
