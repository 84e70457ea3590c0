import accepts from '@fastify/accepts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AppError } from '#errors.ts'

type Route = { readonly pattern: RegExp; readonly methods: readonly string[] }

/** Rejects requests that match no route: 405 with `Allow` if another method would match (RFC 9110 §15.5.6), otherwise 404. */
export function rejectUnrouted(app: FastifyInstance): void {
  const routes: Route[] = []
  /** Methods of each path without parameters. The router would let `GET /v1/views/preview` match `/v1/views/:id`. */
  const literal = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const methods = [method].flat()
    if (!isPattern(url)) {
      literal.set(url, new Set([...(literal.get(url) ?? []), ...methods]))
      return
    }
    const escaped = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    routes.push({ pattern: new RegExp(`^${escaped.replace('*', '.*').replace(/:[^/]+/g, '[^/]+')}$`), methods })
  })
  const methodsOf = (path: string) =>
    literal.get(path) ?? new Set(routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods))

  // Before the body is looked at: some methods must not be sent without one.
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404 && !isPattern(request.routeOptions.url ?? '')) return
    const path = requestPath(request)
    const allowed = request.is404 ? methodsOf(path) : literal.get(path)
    if (allowed === undefined || allowed.has(request.method)) return
    if (allowed.size === 0) throw notFound(path)
    const list = [...allowed].join(', ')
    reply.header('allow', list)
    throw new AppError('method_not_allowed', `${path} does not support ${request.method}; it supports ${list}`)
  })
  // A handler of a matching route calls it.
  app.setNotFoundHandler(async (request) => {
    throw notFound(requestPath(request))
  })
}

function notFound(path: string): AppError {
  return new AppError('not_found', `no such path: ${path}`)
}

function isPattern(url: string): boolean {
  return url.includes(':') || url.includes('*')
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

/** Returns the path as the router reads it: without the query, and decoded. Not by `URL`, which takes `//a/b` for the path `/b` of a host. */
function requestPath({ url }: FastifyRequest): string {
  const target = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')
  const path = target.replace(/[?#].*/, '')
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
