/** Resolves the tables of a statement by the API, with the names of POST /v1/query. */

import type { CallOptions } from '#client/bound.ts'
import type { Client } from '#client/client.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { UserError } from '#lib/user-error.ts'
import type { TableName } from '#query/query-protocol.ts'
import type { TableFiles } from '#query/run-statement.ts'

export type Table = {
  readonly name: TableName
  readonly columns: TableFiles['columns']
  /** Endpoints that may have files of it. */
  readonly endpoints: readonly string[]
  readonly hasKind: (kind: string) => boolean
}

type Endpoint = { readonly id: string; readonly name: string }

const rawSchema = 'raw'
const versionPattern = /^v([1-9]\d{0,8})$/i

const rawColumns = [
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

/** Throws a UserError for a table that there is not. `only` limits all tables to an endpoint. */
export async function resolveTables(
  client: Client,
  names: readonly TableName[],
  only: string | undefined,
  options: CallOptions,
): Promise<readonly Table[]> {
  const endpoints: Endpoint[] = await Array.fromAsync(client.listEndpoints({}, options), ({ id, name }) => ({ id, name }))
  const tables: Table[] = []
  for (const name of names) {
    const isRaw = name.schema.toLowerCase() === rawSchema
    const table = isRaw ? findRaw(name, endpoints) : await findView(client, name, endpoints, options)
    if (table === undefined && name.isOptional) continue
    if (table === undefined) throw await unknownTable(client, name, endpoints, options)
    tables.push(
      only === undefined ? table : { ...table, endpoints: isRaw ? table.endpoints.filter((id) => id === only) : [only] },
    )
  }
  return tables
}

function findRaw(name: TableName, endpoints: readonly Endpoint[]): Table | undefined {
  const wanted = name.table.toLowerCase()
  const endpoint =
    endpoints.find((each) => each.name === name.table) ??
    endpoints.find((each) => each.name.toLowerCase() === wanted || each.id === wanted)
  if (endpoint === undefined) return undefined
  return { name, columns: rawColumns, endpoints: [endpoint.id], hasKind: (kind) => kind === 'parquet' }
}

/** `orders` is the newest version, `orders.v2` a certain one. */
async function findView(
  client: Client,
  name: TableName,
  endpoints: readonly Endpoint[],
  options: CallOptions,
): Promise<Table | undefined> {
  const { schema, table } = name
  const version = schema === '' ? undefined : versionPattern.exec(table)?.[1]
  if (schema !== '' && version === undefined) return undefined
  const viewName = (schema === '' ? table : schema).toLowerCase()
  const found = await Array.fromAsync(client.listViews({ name: viewName, status: 'all' }, options))
  const usable = found.filter((view) => view.status !== 'draft' && (version === undefined || view.version === Number(version)))
  // A version that is published comes before any that is archived.
  const [view] = usable.toSorted(
    (a, b) => Number(b.status === 'published') - Number(a.status === 'published') || b.version - a.version,
  )
  if (view === undefined) return undefined
  const kind = `views/${view.name}/v${view.version}`
  return {
    name,
    columns: view.definition.columns.map((column) => ({ name: column.name, type: column.type, parquet: column.parquet })),
    endpoints: endpoints.map(({ id }) => id),
    // Files of backfills and re-drives have a kind of their own.
    hasKind: (each) => each === kind || each.startsWith(`${kind}/`),
  }
}

async function unknownTable(client: Client, { schema, table }: TableName, endpoints: readonly Endpoint[], options: CallOptions) {
  const isRaw = schema.toLowerCase() === rawSchema
  const views = isRaw ? [] : await Array.fromAsync(client.listViews({}, options), ({ name }) => name)
  const nearest = nearestName(isRaw || schema === '' ? table : schema, isRaw ? endpoints.map(({ name }) => name) : views)
  const shown = schema === '' ? table : `${schema}.${table}`
  const hint = nearest === undefined ? '' : `did you mean ${isRaw ? `raw."${nearest}"` : nearest}? `
  return new UserError(
    `there is no table ${shown}: ${hint}name a published view (orders), one of its versions (orders.v2), or the records of an endpoint as they were received (raw."<name>")`,
  )
}
