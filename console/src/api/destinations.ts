import { infiniteQueryOptions, queryOptions, skipToken } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { slowMs, whileThere } from './intervals.ts'

export type Destination = Schemas['DestinationWithCount']
export type DestinationSettings = Required<Schemas['CreateDestination']>
export type DestinationChange = Schemas['ChangeDestination']
export type ObjectStore = Schemas['ObjectStoreSettings']
export type ValidationStep = Schemas['ValidationStep']

/** Result of a validation, and its time. Control keeps only its message. */
export type Validation = { readonly at: number; readonly steps: readonly ValidationStep[] }

/** A destination can be validated once in this time. */
export const validationIntervalMs = 30_000

const pageRows = 100

/** The key of all that is known about the destinations of an account. */
export const destinationsKey = (account: string) => [account, 'destinations'] as const

export const destinationsQuery = (account: string) =>
  infiniteQueryOptions({
    queryKey: [...destinationsKey(account), 'list'],
    queryFn: ({ pageParam }) => ok(client.GET('/v1/destinations', { params: { query: { limit: pageRows, offset: pageParam } } })),
    initialPageParam: 0,
    getNextPageParam: ({ next_offset }) => next_offset,
    refetchInterval: slowMs,
  })

export const destinationQuery = (account: string, id: string) =>
  queryOptions({
    queryKey: [...destinationsKey(account), id],
    queryFn: () => ok(client.GET('/v1/destinations/{id}', { params: { path: { id } } })),
    refetchInterval: whileThere(slowMs),
  })

/** Where objects are stored, whom roles must trust, what the account may use, and settings that fit. */
export const objectStoreQuery = (account: string) =>
  queryOptions({
    queryKey: [account, 'object-store'],
    queryFn: () => ok(client.GET('/v1/object-store')),
    refetchInterval: slowMs,
  })

/** The last validation that this page asked for. */
export const validationQuery = (account: string, id: string) =>
  queryOptions<Validation>({
    queryKey: [account, 'validation', id],
    queryFn: skipToken,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  })

export function createDestination(settings: DestinationSettings) {
  return ok(client.POST('/v1/destinations', { body: settings }))
}

export function changeDestination(id: string, change: DestinationChange) {
  return ok(client.PATCH('/v1/destinations/{id}', { params: { path: { id } }, body: change }))
}

export function removeDestination(id: string): Promise<unknown> {
  return ok(client.DELETE('/v1/destinations/{id}', { params: { path: { id } } }))
}

export function validateDestination(id: string) {
  return ok(client.POST('/v1/destinations/{id}/validate', { params: { path: { id } } }))
}

/** Lets an endpoint deliver to a destination. */
export function deliverTo(endpoint_id: string, destination_id: string) {
  return ok(client.PATCH('/v1/endpoints/{id}', { params: { path: { id: endpoint_id } }, body: { destination_id } }))
}
