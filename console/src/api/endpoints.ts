import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client, forAccount, ok, type Schemas } from './client.ts'
import { movingMs, slowMs, whileThere } from './intervals.ts'
import { readWhole, wholeInterval } from './whole-list.ts'

export type Endpoint = Schemas['Endpoint']
export type Commit = Schemas['Commit']
export type CommitFiles = Schemas['CommitFiles']
export type EndpointChange = Schemas['ChangeEndpoint']

/** Segment that holds a record, as its receipt names it. */
export type Receipt = { readonly node_id: string; readonly segment_seq: number }

/** All of them, the newest first. */
export const endpointsQuery = (account: string) =>
  queryOptions({
    queryKey: [account, 'endpoints'],
    queryFn: () => readWhole((query) => ok(client.GET('/v1/endpoints', { params: { query }, headers: forAccount(account) }))),
    refetchInterval: wholeInterval(movingMs),
  })

export const endpointQuery = (account: string, id: string) =>
  queryOptions({
    queryKey: [account, 'endpoints', id],
    queryFn: () => ok(client.GET('/v1/endpoints/{id}', { params: { path: { id } } })),
    refetchInterval: whileThere(movingMs),
  })

/** The regions that have nodes. */
export const regionsQuery = (account: string) =>
  queryOptions({
    queryKey: [account, 'regions'],
    queryFn: async () => {
      const { items } = await ok(client.GET('/v1/regions', { headers: forAccount(account) }))
      return items.map(({ region }) => region)
    },
  })

const commitsOfPage = 50

export const commitsQuery = (account: string, id: string) =>
  infiniteQueryOptions({
    queryKey: [account, 'endpoints', id, 'commits'],
    queryFn: ({ pageParam }) => {
      const query = { limit: commitsOfPage, ...(pageParam === null ? {} : { before: pageParam }) }
      return ok(client.GET('/v1/endpoints/{id}/commits', { params: { path: { id }, query } }))
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
    refetchInterval: whileThere(slowMs),
  })

/** Its links are good for an hour. */
export const commitFilesQuery = (account: string, id: string, commit_id: string) =>
  queryOptions({
    queryKey: [account, 'endpoints', id, 'commits', commit_id, 'files'],
    queryFn: () => ok(client.GET('/v1/endpoints/{id}/commits/{commit_id}/files', { params: { path: { id, commit_id } } })),
  })

/** The commit of a receipt; null until its segment is delivered, and asked for again until then. */
export const receiptCommitQuery = (account: string, id: string, receipt: Receipt) =>
  queryOptions({
    queryKey: [account, 'endpoints', id, 'commits', receipt],
    queryFn: async () => {
      const { items } = await ok(client.GET('/v1/endpoints/{id}/commits', { params: { path: { id }, query: receipt } }))
      return items[0] ?? null
    },
    refetchInterval: (query) => (query.state.data ? false : whileThere(movingMs / 2)(query)),
  })

/** Fate of the records of a receipt; asked for again until its segment is delivered. */
export const receiptQuery = (account: string, id: string, { node_id, segment_seq }: Receipt) =>
  queryOptions({
    queryKey: [account, 'endpoints', id, 'receipts', node_id, segment_seq],
    queryFn: () => {
      const path = { id, receipt_id: `${node_id}-${segment_seq}` }
      return ok(client.GET('/v1/endpoints/{id}/receipts/{receipt_id}', { params: { path } }))
    },
    refetchInterval: (query) => (query.state.data?.state === 'delivered' ? false : whileThere(movingMs)(query)),
  })

/** Destinations to choose from, by name. */
export const destinationChoicesQuery = (account: string) =>
  queryOptions({
    queryKey: [account, 'destinations', 'choices'],
    queryFn: async () => {
      const headers = forAccount(account)
      const { items } = await readWhole((query) => ok(client.GET('/v1/destinations', { params: { query }, headers })))
      return items.map(({ id, name, status }) => ({ id, name, status }))
    },
  })

export function createEndpoint(settings: Schemas['CreateEndpoint']) {
  return ok(client.POST('/v1/endpoints', { body: settings }))
}

export function changeEndpoint(id: string, change: EndpointChange) {
  return ok(client.PATCH('/v1/endpoints/{id}', { params: { path: { id } }, body: change }))
}

export function pauseEndpoint(id: string) {
  return ok(client.POST('/v1/endpoints/{id}/pause', { params: { path: { id } } }))
}

export function resumeEndpoint(id: string) {
  return ok(client.POST('/v1/endpoints/{id}/resume', { params: { path: { id } } }))
}

export function removeEndpoint(id: string) {
  return ok(client.DELETE('/v1/endpoints/{id}', { params: { path: { id } } }))
}

export function sendTestEvent(id: string, record: string | undefined) {
  const body = record === undefined ? {} : { record }
  return ok(client.POST('/v1/endpoints/{id}/test-events', { params: { path: { id } }, body }))
}
