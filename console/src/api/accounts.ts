import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { slowMs, whileThere } from './intervals.ts'
import type { Role } from './session.ts'

export type Account = Schemas['Account']
export type CreatedAccount = Schemas['CreatedAccount']
export type QuotaUse = Schemas['QuotaUse']
export type QuotaName = keyof QuotaUse['quotas']

const pageSize = 100

export const accountsKey = ['accounts'] as const

/** Newest first. */
export const accountsQuery = infiniteQueryOptions({
  queryKey: [...accountsKey, 'list'],
  queryFn: ({ pageParam: offset }) => ok(client.GET('/v1/accounts', { params: { query: { limit: pageSize, offset } } })),
  initialPageParam: 0,
  getNextPageParam: ({ next_offset }) => next_offset,
  refetchInterval: slowMs,
})

export const accountQuery = (id: string) =>
  queryOptions({
    queryKey: [...accountsKey, id],
    queryFn: () => ok(client.GET('/v1/accounts/{id}', { params: { path: { id } } })),
    refetchInterval: whileThere(slowMs),
  })

export const quotaUseQuery = (id: string) =>
  queryOptions({
    queryKey: [...accountsKey, id, 'quotas'],
    queryFn: () => ok(client.GET('/v1/accounts/{id}/quotas', { params: { path: { id } } })),
    refetchInterval: whileThere(slowMs),
  })

export function createAccount(name: string): Promise<CreatedAccount> {
  return ok(client.POST('/v1/accounts', { body: { name } }))
}

/** For somebody who is to join an account that the operator need not belong to. */
export function inviteTo(id: string, role: Role, email: string): Promise<Schemas['CreatedInvitation']> {
  const body = { role, email: email === '' ? null : email }
  return ok(client.POST('/v1/accounts/{id}/invitations', { params: { path: { id } }, body }))
}

export function changeAccount(id: string, body: Schemas['ChangeAccount']): Promise<Account> {
  return ok(client.PATCH('/v1/accounts/{id}', { params: { path: { id } }, body }))
}
