import { scopes } from '#model/api-key.ts'
import { newId } from '#model/id.ts'
import { type NewApiKey, newApiKey, newExternalId } from './secrets.ts'

/** Returns an account to create, and its first key, which has every scope. The secret is shown once and never stored. */
export function newAccount(name: string, { secret, prefix, hash }: NewApiKey = newApiKey()) {
  const account = { id: newId(), name, external_id: newExternalId() }
  const key = { id: newId(), account_id: account.id, name: 'first key', prefix, hash, scopes, endpoint_ids: null, origins: null }
  return { account, key, secret }
}
