import accepts from '@fastify/accepts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AppError } from '#errors.ts'

type Route = { readonly pattern: RegExp; readonly methods: readonly string[] }

/** Rejects requests that match no route: 405 with `Allow` if another method would match (RFC 9110 §15.5.6), otherwise 404. */
export function rejectUnrouted(app: FastifyInstance): void {
  const routes: Route[] = []
  app.addHook('onRoute', ({ url, method }) => {
    const literal = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    const pattern = new RegExp(`^${literal.replace('*', '.*').replace(/:[^/]+/g, '[^/]+')}$`)
    routes.push({ pattern, methods: [method].flat() })
  })
  app.setNotFoundHandler(async (request, reply) => {
    const path = requestPath(request)
    const allowed = new Set(routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods))
    // The handler of a matching route may have called this itself.
    if (allowed.size === 0 || allowed.has(request.method)) throw new AppError('not_found', `no such path: ${path}`)
    reply.header('allow', [...allowed].join(', '))
    throw new AppError('method_not_allowed', `${path} does not support ${request.method}; it supports ${[...allowed].join(', ')}`)
  })
}

const responseTypes = ['application/json', 'application/json; charset=utf-8', 'application/problem+json']

/** RFC 9110 §12.5.1: rejects a client that excludes JSON, before doing any work for it. */
export async function rejectUnacceptable(app: FastifyInstance): Promise<void> {
  await app.register(accepts)
  app.addHook('onRequest', async (request) => {
    // An empty header states no preference.
    if (request.headers.accept?.trim() === '' || request.accepts().type(responseTypes)) return
    throw new AppError('not_acceptable', 'this operation returns application/json; send Accept: application/json')
  })
}

function requestPath({ url }: FastifyRequest): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
