import { isPerson, type Principal } from '#model/principal.ts'

/** The value of `created_by` and `activated_by`. */
export function actorOf(principal: Principal): `key:${string}` | `person:${string}` {
  return isPerson(principal) ? `person:${principal.person_id}` : `key:${principal.key_id}`
}
