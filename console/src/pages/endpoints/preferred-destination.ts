import type { Endpoint } from '../../api/endpoints.ts'

export type DestinationChoice = { readonly id: string; readonly name: string; readonly status: string }

/**
 * Returns the id of the destination that a new endpoint most likely delivers to: a validated one, and that of the newest endpoint if
 * possible. Undefined if there is no destination. Both lists begin with the newest.
 */
export function preferredDestination(
  destinations: readonly DestinationChoice[],
  endpoints: readonly Pick<Endpoint, 'destination_id'>[],
): string | undefined {
  const valid = destinations.filter(({ status }) => status === 'valid')
  const used = endpoints.find(({ destination_id }) => valid.some(({ id }) => id === destination_id))?.destination_id
  return used ?? valid[0]?.id ?? destinations[0]?.id
}
