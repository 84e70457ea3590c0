import type { LogOwner } from '../../api/nodes.ts'

export const owners = ['active', 'paused', 'draining', 'deleted', 'unknown'] as const satisfies readonly LogOwner[]

/** Reads the filter of logs from the address. */
export function nodeSearch({ owner }: Record<string, unknown>): { readonly owner?: LogOwner } {
  const known = owners.find((each) => each === owner)
  return known === undefined ? {} : { owner: known }
}
