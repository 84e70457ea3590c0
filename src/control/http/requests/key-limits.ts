/**
 * Limits keys to their endpoints.
 *
 * Law: such a key reaches what is below its endpoints in the API, and the list of them and queries, which the services filter. Every other operation that
 * needs a token is refused, also one that is added later.
 */
import type { FastifyRequest } from 'fastify'
import { AppError } from '#errors.ts'
import { endpointLimit, type Principal } from '#model/principal.ts'

/** Their services leave out other endpoints. */
const filtered: ReadonlySet<string | undefined> = new Set(['/v1/endpoints', '/v1/query'])
const belowEndpoint = /^\/v1\/endpoints\/:(\w+)/

/** Throws forbidden. */
export function requireReach({ routeOptions, params }: FastifyRequest, principal: Principal): void {
  const limit = endpointLimit(principal)
  if (limit === null || filtered.has(routeOptions.url)) return
  const [, parameter] = belowEndpoint.exec(routeOptions.url ?? '') ?? []
  if (parameter === undefined) {
    const detail = 'the key is limited to endpoints, and this operation is about the whole account; use another key'
    throw new AppError('forbidden', detail)
  }
  const id = String((params as Readonly<Record<string, unknown>>)[parameter]).toLowerCase()
  if (!limit.includes(id)) throw new AppError('forbidden', `the key is not for the endpoint ${id}; use another key`)
}
