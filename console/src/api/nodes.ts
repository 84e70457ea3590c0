import { infiniteQueryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { movingMs, slowMs, whileThere } from './intervals.ts'

export type Node = Schemas['Node']
export type NodeLog = Schemas['NodeLog']
export type NodeRemoval = Schemas['NodeRemoval']
export type LogOwner = NodeLog['owner']

const pageSize = 100

/** Everything below this key changes when a node does. */
export const nodesKey = ['nodes'] as const

export const nodesQuery = infiniteQueryOptions({
  queryKey: [...nodesKey, 'list'],
  queryFn: ({ pageParam: offset }) => ok(client.GET('/v1/nodes', { params: { query: { limit: pageSize, offset } } })),
  initialPageParam: 0,
  getNextPageParam: ({ next_offset }) => next_offset,
  refetchInterval: movingMs,
})

/** Logs of each endpoint on a node. */
export const nodeLogsQuery = (id: string, owner: LogOwner | undefined) =>
  infiniteQueryOptions({
    queryKey: [...nodesKey, id, 'logs', owner],
    queryFn: ({ pageParam: offset }) => {
      const query = { limit: pageSize, offset, ...(owner === undefined ? {} : { owner }) }
      return ok(client.GET('/v1/nodes/{id}/segments', { params: { path: { id }, query } }))
    },
    initialPageParam: 0,
    getNextPageParam: ({ next_offset }) => next_offset,
    refetchInterval: whileThere(slowMs),
  })

export function changeNode(id: string, body: Schemas['ChangeNode']): Promise<Node> {
  return ok(client.PATCH('/v1/nodes/{id}', { params: { path: { id } }, body }))
}

/** `force` also removes a node that runs, or whose disk holds data that was not delivered. */
export function removeNode(id: string, force: boolean): Promise<NodeRemoval> {
  return ok(client.DELETE('/v1/nodes/{id}', { params: { path: { id }, query: { force: force ? 'true' : 'false' } } }))
}

/** `release` also gives the id free, for a machine whose disk was lost. */
export function revokeCredential(id: string, release: boolean): Promise<unknown> {
  const query = { release: release ? 'true' : 'false' } as const
  return ok(client.DELETE('/v1/nodes/{id}/credential', { params: { path: { id }, query } }))
}
