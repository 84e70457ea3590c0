import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type { paths } from '../../../src/client/generated/schema.ts'
import { client, ok } from './client.ts'
import { slowMs, whileThere } from './intervals.ts'
import { viewsKey } from './views.ts'

export type ViewMetrics = paths['/v1/views/{id}/metrics']['get']['responses'][200]['content']['application/json']
export type EndpointViewMetrics = ViewMetrics['endpoints'][number]
export type WindowCounts = EndpointViewMetrics['last_24h']
export type ViewCounts = Omit<WindowCounts, 'redriven' | 'rows' | 'duplicates'>
export type ColumnMetrics = NonNullable<EndpointViewMetrics['columns']>[number]
export type UnmappedPath = NonNullable<EndpointViewMetrics['unmapped_paths']>[number]

/** Outcomes of the records that a version processed, by endpoint, with the quality of each column. */
export const viewMetricsQuery = (account: string, id: string) =>
  queryOptions({
    queryKey: [...viewsKey(account), id, 'metrics'],
    queryFn: () => ok(client.GET('/v1/views/{id}/metrics', { params: { path: { id }, query: { detail: 'columns' } } })),
    refetchInterval: whileThere(slowMs),
  })

const pageSize = 200

/** The same of all published versions, newest first, without their columns. */
export const allViewMetricsQuery = (account: string) =>
  infiniteQueryOptions({
    queryKey: [...viewsKey(account), 'metrics'],
    queryFn: ({ pageParam }) => ok(client.GET('/v1/view-metrics', { params: { query: { limit: pageSize, offset: pageParam } } })),
    initialPageParam: 0,
    getNextPageParam: ({ next_offset }) => next_offset,
    refetchInterval: slowMs,
  })
