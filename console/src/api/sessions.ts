import { queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'

/** A browser in which somebody is signed in. */
export type OpenSession = Schemas['OpenSession']

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: async () => (await ok(client.GET('/v1/sessions'))).items,
})

export function endSession(id: string): Promise<unknown> {
  return ok(client.DELETE('/v1/sessions/{id}', { params: { path: { id } } }))
}

export function endOtherSessions(): Promise<unknown> {
  return ok(client.DELETE('/v1/sessions'))
}
