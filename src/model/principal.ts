import type { Scope } from './api-key.ts'
import type { Role } from './person.ts'

/** A caller with a token. `key_id` names the key that it was issued for. */
export type KeyPrincipal = {
  readonly account_id: string
  readonly key_id: string
  readonly scopes: readonly Scope[]
  /** The only endpoints that it may send to and read; null for all of the account. */
  readonly endpoint_ids: readonly string[] | null
  /** Set for a public key: the only origins of web pages that it may send from. A token has none. */
  readonly origins?: readonly string[] | null
}

/** A person with a session of the console, in one of their accounts. */
export type PersonPrincipal = {
  readonly account_id: string
  readonly person_id: string
  readonly role: Role
  readonly scopes: readonly Scope[]
}

/** The authenticated caller, in the account that the call is for. */
export type Principal = KeyPrincipal | PersonPrincipal

/** Returns the only endpoints that the caller may reach; null for all of the account. */
export function endpointLimit(principal: Principal): readonly string[] | null {
  return isPerson(principal) ? null : principal.endpoint_ids
}

export function isPerson(principal: Principal): principal is PersonPrincipal {
  return 'person_id' in principal
}
