import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { movingMs, slowMs } from './intervals.ts'

export type ApiKey = Schemas['ApiKey']
export type CreatedApiKey = ApiKey & { readonly api_key: string }
export type Scope = ApiKey['scopes'][number]

/** Everything below this key changes when a key does. */
export const keysKey = (account: string) => [account, 'keys'] as const

const pageSize = 100

function listKeys(limit: number, offset: number) {
  return ok(client.GET('/v1/keys', { params: { query: { limit, offset } } }))
}

/** Newest first, with revoked ones. */
export const keysQuery = (account: string) =>
  infiniteQueryOptions({
    queryKey: [...keysKey(account), 'list'],
    queryFn: ({ pageParam }) => listKeys(pageSize, pageParam),
    initialPageParam: 0,
    getNextPageParam: ({ next_offset }) => next_offset,
    refetchInterval: slowMs,
  })

/** When a key that was just created was first used; null until then. */
export const firstUseQuery = (account: string, id: string) =>
  queryOptions({
    queryKey: [...keysKey(account), id, 'first use'],
    queryFn: async () => (await listKeys(pageSize, 0)).items.find((key) => key.id === id)?.last_used_at ?? null,
    refetchInterval: ({ state }) => (state.data == null ? movingMs : false),
  })

export type NewKey = {
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Null for all endpoints of the account. */
  readonly endpoint_ids: readonly string[] | null
  readonly public: boolean
  /** The origins of the pages of a public key; null for other keys. */
  readonly origins: readonly string[] | null
}

export function createKey(key: NewKey): Promise<CreatedApiKey> {
  const { scopes, endpoint_ids, origins } = key
  const body = { ...key, scopes: [...scopes], endpoint_ids: endpoint_ids && [...endpoint_ids], origins: origins && [...origins] }
  return ok(client.POST('/v1/keys', { body }))
}

export type Revocation = {
  readonly id: string
  /** Whether its tokens and connections end at once, too. */
  readonly now: boolean
}

export function revokeKey({ id, now }: Revocation): Promise<ApiKey> {
  return ok(client.POST('/v1/keys/{id}/revoke', { params: { path: { id }, query: { now: now ? 'true' : 'false' } } }))
}
