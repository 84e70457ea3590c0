/** Reads the resources of an account, by the names that files use. */
import type { Client } from '#client/client.ts'
import { ApiError } from '#client/errors.ts'
import type { Schemas } from '#client/generated/schema.ts'
import { inParallel } from '#lib/in-parallel.ts'
import type { CanaryRule } from '#model/canary-rule.ts'
import { setupLimits } from './limits.ts'

export type Destination = Schemas['Destination']
export type Endpoint = Schemas['Endpoint']
export type View = Schemas['View']
export type ApiKey = Schemas['ApiKey']

/** A version of a view that an endpoint has. */
export type Attachment = {
  readonly id: string
  readonly endpoint: string
  readonly endpoint_id: string
  readonly view: string
  readonly version: number
  readonly is_required: boolean
  readonly canary_start_ts: string | null
  readonly canary_rule: CanaryRule | null
}

export type Account = {
  readonly store: Schemas['ObjectStoreSettings']
  readonly quotas: Schemas['QuotaUse']['quotas']
  readonly destinations: ReadonlyMap<string, Destination>
  /** Without those that are being deleted. */
  readonly endpoints: ReadonlyMap<string, Endpoint>
  readonly draining: ReadonlyMap<string, Endpoint>
  /** All versions, the newest first. */
  readonly views: ReadonlyMap<string, readonly View[]>
  /** Attachments of `endpoints`, the oldest version first. */
  readonly attachments: readonly Attachment[]
  readonly drainingAttachments: readonly Attachment[]
  /** Keys that are not revoked, the newest first. Undefined if the key of this command may not list them. */
  readonly keys: readonly ApiKey[] | undefined
  /** Names of the endpoints by their ids. */
  readonly endpointNames: ReadonlyMap<string, string>
}

export async function readAccount(client: Client): Promise<Account> {
  const [store, { quotas }, destinations, endpoints, versions, keys] = await Promise.all([
    client.getObjectStore(),
    client.getQuotas(),
    Array.fromAsync(client.listDestinations()),
    Array.fromAsync(client.listEndpoints()),
    Array.fromAsync(client.listViews({ status: 'all' })),
    readKeys(client),
  ])
  const attached: Attachment[] = []
  const kept = endpoints.filter(({ status }) => status !== 'draining')
  const endpointNames = new Map(kept.map(({ id, name }) => [id, name]))
  await inParallel(
    setupLimits.parallel,
    versions.filter(({ usage_count }) => usage_count > 0),
    async ({ id, name, version }) => attached.push(...(await attachmentsOf(client, id, name, version))),
  )
  return {
    ...{ store, quotas, keys, endpointNames },
    destinations: byName(destinations),
    endpoints: byName(kept),
    draining: byName(endpoints.filter(({ status }) => status === 'draining')),
    views: Map.groupBy(
      versions.toSorted((a, b) => b.version - a.version),
      ({ name }) => name,
    ),
    attachments: attached.filter(({ endpoint_id }) => endpointNames.has(endpoint_id)).toSorted((a, b) => a.version - b.version),
    drainingAttachments: attached.filter(({ endpoint_id }) => !endpointNames.has(endpoint_id)),
  }
}

async function readKeys(client: Client): Promise<readonly ApiKey[] | undefined> {
  try {
    return (await Array.fromAsync(client.listKeys())).filter(({ revoked_at }) => revoked_at === null)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'forbidden') return undefined
    throw error
  }
}

async function attachmentsOf(client: Client, id: string, view: string, version: number): Promise<readonly Attachment[]> {
  const { endpoints } = await client.getView(id)
  return endpoints.map(({ id: endpoint_id, binding_id, endpoint_name: endpoint, is_required, canary_start_ts, canary_rule }) => ({
    ...{ id: binding_id, endpoint, endpoint_id, view, version, is_required, canary_start_ts, canary_rule },
  }))
}

function byName<Item extends { readonly name: string }>(items: readonly Item[]): ReadonlyMap<string, Item> {
  return new Map(items.map((item) => [item.name, item]))
}
