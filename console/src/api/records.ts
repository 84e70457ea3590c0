import { queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { slowMs, whileThere } from './intervals.ts'

export type DeliveredRecord = Schemas['DeliveredRecord']

type RecordsOf = {
  readonly limit?: number
  readonly contains?: string
  readonly node_id?: string
  readonly segment_seq?: number
}

/** The latest records of an endpoint, as they stand in the bucket. */
export const recordsQuery = (account: string, endpoint: string, query: RecordsOf) =>
  queryOptions({
    queryKey: [account, 'endpoints', endpoint, 'records', query],
    queryFn: () => ok(client.GET('/v1/endpoints/{id}/records', { params: { path: { id: endpoint }, query } })),
    // Each call reads files from the bucket. Those of one segment never change.
    ...(query.segment_seq === undefined ? { refetchInterval: whileThere(slowMs) } : { staleTime: Number.POSITIVE_INFINITY }),
    retry: false,
  })
