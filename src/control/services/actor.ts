import type { Principal } from '#model/api-key.ts'

/** The value of `created_by` and `activated_by`. */
export function actorOf({ key_id }: Principal): `key:${string}` {
  return `key:${key_id}`
}
