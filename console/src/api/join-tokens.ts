import { infiniteQueryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { slowMs } from './intervals.ts'

export type JoinToken = Schemas['JoinToken']
export type CreatedJoinToken = Schemas['CreatedJoinToken']

const pageSize = 50

export const joinTokensKey = ['join tokens'] as const

/** Newest first, also those that can no longer be used. */
export const joinTokensQuery = infiniteQueryOptions({
  queryKey: joinTokensKey,
  queryFn: ({ pageParam: offset }) => ok(client.GET('/v1/join-tokens', { params: { query: { limit: pageSize, offset } } })),
  initialPageParam: 0,
  getNextPageParam: ({ next_offset }) => next_offset,
  refetchInterval: slowMs,
})

export function createJoinToken(body: Schemas['CreateJoinToken']): Promise<CreatedJoinToken> {
  return ok(client.POST('/v1/join-tokens', { body }))
}

export function revokeJoinToken(id: string): Promise<unknown> {
  return ok(client.DELETE('/v1/join-tokens/{id}', { params: { path: { id } } }))
}
