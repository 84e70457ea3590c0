/**
 * The tables that statements name, for POST /v1/query and `inlet query`.
 *
 * Law: only views and endpoints of the account are tables. A name means the same wherever a statement runs.
 */
import type { TableName } from './query-protocol.ts'

/** Schema of the records as they were received. */
const rawSchema = 'raw'
const versionPattern = /^v([1-9]\d{0,8})$/i

export const rawColumns = [
  { name: 'ingested_at', type: 'TIMESTAMPTZ' },
  { name: 'protocol', type: 'VARCHAR' },
  { name: 'topic', type: 'VARCHAR' },
  { name: 'client_id', type: 'VARCHAR' },
  { name: 'segment_seq', type: 'BIGINT' },
  { name: 'record_index', type: 'BIGINT' },
  { name: 'payload', type: 'VARCHAR' },
  { name: 'payload_bytes', type: 'BLOB' },
  { name: 'attributes', type: 'VARCHAR' },
] as const

type Endpoint = { readonly id: string; readonly name: string }
type Version = { readonly version: number; readonly status: string }

/** Lists what an account has. They may have more than what was asked for. */
export type Catalog<View extends Version> = {
  /** Lists endpoints that are not deleted, the oldest first. */
  readonly listEndpoints: (nameOrId: string) => Promise<readonly Endpoint[]>
  /** Lists the versions of a view. */
  readonly listVersions: (name: string) => Promise<readonly View[]>
}

export type FoundTable<View> =
  | { readonly kind: 'raw'; readonly endpoint_id: string }
  | { readonly kind: 'view'; readonly view: View }

/** Finds what a name stands for: `orders` is the newest version of a view, `orders.v2` a certain one, and `raw."Line 1"` an endpoint. */
export async function findTable<View extends Version>(
  { schema, table }: TableName,
  { listEndpoints, listVersions }: Catalog<View>,
): Promise<FoundTable<View> | undefined> {
  if (isRaw({ schema })) {
    const endpoint = chooseEndpoint(await listEndpoints(table), table)
    return endpoint && { kind: 'raw', endpoint_id: endpoint.id }
  }
  const version = schema === '' ? undefined : versionPattern.exec(table)?.[1]
  if (schema !== '' && version === undefined) return undefined
  const view = chooseVersion(await listVersions(viewNameOf({ schema, table })), version)
  return view && { kind: 'view', view }
}

export function isRaw({ schema }: Pick<TableName, 'schema'>): boolean {
  return schema.toLowerCase() === rawSchema
}

export function viewNameOf({ schema, table }: Pick<TableName, 'schema' | 'table'>): string {
  return (schema === '' ? table : schema).toLowerCase()
}

export function printName({ schema, table }: Pick<TableName, 'schema' | 'table'>): string {
  return schema === '' ? table : `${schema}.${table}`
}

/** `hint` is empty, or a sentence with a space at its end. */
export function describeUnknownTable(name: TableName, hint = ''): string {
  return `there is no table ${printName(name)}: ${hint}name a published view (orders), one of its versions (orders.v2), or the records of an endpoint as they were received (raw."<name of the endpoint>")`
}

/** Upper and lower case count only if names differ in nothing else. */
function chooseEndpoint(endpoints: readonly Endpoint[], nameOrId: string): Endpoint | undefined {
  const wanted = nameOrId.toLowerCase()
  return (
    endpoints.find(({ name }) => name === nameOrId) ??
    endpoints.find(({ id, name }) => name.toLowerCase() === wanted || id === wanted)
  )
}

/** A version that is published comes before any that is archived. */
function chooseVersion<View extends Version>(versions: readonly View[], wanted: string | undefined): View | undefined {
  const [newest] = versions
    .filter(({ status, version }) => status !== 'draft' && (wanted === undefined || version === Number(wanted)))
    .toSorted((a, b) => Number(b.status === 'published') - Number(a.status === 'published') || b.version - a.version)
  return newest
}
