import type { Principal } from '#model/api-key.ts'

/** How `created_by` and `activated_by` name who did it. */
export function actorOf({ key_id }: Principal): string {
  return `key:${key_id}`
}
