/** Resolves the tables of a statement by the API. */
import type { CallOptions } from '#client/bound.ts'
import type { Client } from '#client/client.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { UserError } from '#lib/user-error.ts'
import { writtenColumns } from '#model/definition.ts'
import type { TableName } from '#query/query-protocol.ts'
import type { TableFiles } from '#query/run-statement.ts'
import { describeUnknownTable, findTable, isRaw, rawColumns, viewNameOf } from '#query/tables.ts'

export type Table = {
  readonly name: TableName
  readonly columns: TableFiles['columns']
  /** Endpoints that may have files of it. */
  readonly endpoints: readonly string[]
  readonly hasKind: (kind: string) => boolean
}

type Endpoint = { readonly id: string; readonly name: string; readonly created_at: string }

/** Throws a UserError for a table that there is not. `only` limits all tables to an endpoint. */
export async function resolveTables(
  client: Client,
  names: readonly TableName[],
  only: string | undefined,
  options: CallOptions,
): Promise<readonly Table[]> {
  const listed: Endpoint[] = await Array.fromAsync(client.listEndpoints({}, options), ({ id, name, created_at }) => ({
    ...{ id, name, created_at },
  }))
  const endpoints = listed.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1))
  const catalog = {
    listEndpoints: async () => endpoints,
    listVersions: (name: string) => Array.fromAsync(client.listViews({ name, status: 'all' }, options)),
  }
  const tables: Table[] = []
  for (const name of names) {
    const found = await findTable(name, catalog)
    if (found === undefined && name.isOptional) continue
    if (found === undefined) throw await unknownTable(client, name, endpoints, options)
    if (found.kind === 'raw') {
      const own = only === undefined || only === found.endpoint_id ? [found.endpoint_id] : []
      tables.push({ name, columns: rawColumns, endpoints: own, hasKind: (kind) => kind === 'parquet' })
      continue
    }
    const { definition, name: viewName, version } = found.view
    const kind = `views/${viewName}/v${version}`
    tables.push({
      name,
      columns: writtenColumns(definition.columns).map((column) => ({
        name: column.name,
        type: column.type,
        parquet: column.parquet,
      })),
      endpoints: only === undefined ? endpoints.map(({ id }) => id) : [only],
      // Files of backfills and re-drives have a kind of their own.
      hasKind: (each) => each === kind || each.startsWith(`${kind}/`),
    })
  }
  return tables
}

async function unknownTable(client: Client, name: TableName, endpoints: readonly Endpoint[], options: CallOptions) {
  const known = isRaw(name)
    ? endpoints.map((endpoint) => endpoint.name)
    : await Array.fromAsync(client.listViews({}, options), (view) => view.name)
  const nearest = nearestName(isRaw(name) ? name.table : viewNameOf(name), known)
  const hint = nearest === undefined ? '' : `did you mean ${isRaw(name) ? `raw."${nearest}"` : nearest}? `
  return new UserError(describeUnknownTable(name, hint))
}
