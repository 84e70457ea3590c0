import { queryOptions } from '@tanstack/react-query'
import { client, forAccount, ok, type Schemas } from './client.ts'
import { slowMs } from './intervals.ts'
import { readWhole, wholePageSize } from './whole-list.ts'

export type QueryResult = Schemas['QueryResult']
export type RunQuery = Schemas['RunQuery']

/** A statement is run again only if somebody asks: each run reads files. */
export const resultQuery = (account: string, query: RunQuery, run: number) =>
  queryOptions({
    queryKey: [account, 'query', query, run],
    queryFn: ({ signal }) => ok(client.POST('/v1/query', { body: query, signal })),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 300_000,
    retry: false,
    refetchOnWindowFocus: false,
    refetchInterval: false,
  })

/** A table that a statement may name. */
export type QueryTable = {
  /** As SQL writes it. */
  readonly name: string
  readonly kind: 'view' | 'raw'
  readonly columns: readonly { readonly name: string; readonly type: string }[]
}

const rawColumns: QueryTable['columns'] = [
  ['ingested_at', 'TIMESTAMP'],
  ['protocol', 'VARCHAR'],
  ['topic', 'VARCHAR'],
  ['client_id', 'VARCHAR'],
  ['segment_seq', 'BIGINT'],
  ['record_index', 'BIGINT'],
  ['payload', 'VARCHAR'],
  ['payload_bytes', 'BLOB'],
  ['attributes', 'VARCHAR'],
].map(([name = '', type = '']) => ({ name, type }))

/** The newest published version of each view, and the records of each endpoint that writes them. */
export const tablesQuery = (account: string) =>
  queryOptions({
    queryKey: [account, 'query', 'tables'],
    queryFn: async (): Promise<readonly QueryTable[]> => {
      const headers = forAccount(account)
      const [views, endpoints] = await Promise.all([
        readWhole((page) => ok(client.GET('/v1/views', { params: { query: { status: 'published', ...page } }, headers }))),
        readWhole((query) => ok(client.GET('/v1/endpoints', { params: { query }, headers }))),
      ])
      const newest = new Map<string, (typeof views.items)[number]>()
      for (const view of views.items) if (view.version > (newest.get(view.name)?.version ?? 0)) newest.set(view.name, view)
      const ofViews = [...newest.values()]
        .toSorted((a, b) => a.name.localeCompare(b.name))
        .map(({ name, definition }): QueryTable => {
          const columns = definition.columns
            .filter(({ hidden }) => hidden !== true)
            .map((column) => ({ name: column.name, type: column.type.toUpperCase() }))
          return { name: identifier(name), kind: 'view', columns }
        })
      const raw = endpoints.items
        .filter(({ output_formats }) => output_formats.includes('parquet'))
        .toSorted((a, b) => a.name.localeCompare(b.name))
        .map(({ name }): QueryTable => ({ name: `raw.${identifier(name)}`, kind: 'raw', columns: rawColumns }))
      return [...ofViews, ...raw]
    },
    staleTime: 30_000,
    // A view that is published elsewhere becomes a table here.
    refetchInterval: ({ state: { data } }) => slowMs * Math.max(1, Math.ceil((data?.length ?? 0) / wholePageSize)),
  })

/** A name as SQL writes it. Quotes never harm, but most names are read more easily without. */
export function identifier(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !keywords.has(name) ? name : `"${name.replaceAll('"', '""')}"`
}

/** Words that DuckDB takes for its own. */
const keywords: ReadonlySet<string> = new Set(
  `all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast check collate
  collation column columns concurrently constraint create cross default deferrable desc describe distinct do else end except
  false fetch for foreign freeze from full generated glob group having ilike in initially inner intersect into is isnull
  join lambda lateral leading left like limit map natural not notnull null offset on only or order outer overlaps pivot
  pivot_longer pivot_wider placing positional primary qualify references returning right select semi show similar some
  struct summarize symmetric table tablesample then to trailing true try_cast union unique unpack unpivot using variadic
  verbose when where window with`.split(/\s+/),
)
