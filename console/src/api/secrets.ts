import { queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { slowMs } from './intervals.ts'
import { readWhole } from './whole-list.ts'

export type Secret = Schemas['Secret']
/** `value` is base64, and only there if Inlet made it. */
export type SecretWithValue = Secret & { readonly value?: string | undefined }

/** Everything below this key changes when a secret does. */
export const secretsKey = (account: string) => [account, 'secrets'] as const

export const secretsQuery = (account: string) =>
  queryOptions({
    queryKey: secretsKey(account),
    queryFn: () => readWhole((page) => ok(client.GET('/v1/secrets', { params: { query: page } }))),
    refetchInterval: slowMs,
  })

/** Without a value, Inlet makes one. */
export type NewValue = { readonly value?: string; readonly encoding: 'text' | 'base64' }

export function createSecret(name: string, value: NewValue): Promise<SecretWithValue> {
  return ok(client.POST('/v1/secrets', { body: { name, ...value } }))
}

export function rotateSecret(id: string, value: NewValue): Promise<SecretWithValue> {
  return ok(client.POST('/v1/secrets/{id}/rotate', { params: { path: { id } }, body: { ...value } }))
}

export function deleteSecret(id: string): Promise<unknown> {
  return ok(client.DELETE('/v1/secrets/{id}', { params: { path: { id } } }))
}
