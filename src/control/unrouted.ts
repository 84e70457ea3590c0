import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AppError } from '#errors.ts'

type Route = { readonly pattern: RegExp; readonly methods: readonly string[] }

/** Answers what no route takes: 405 with `Allow` where another method would do (RFC 9110 §15.5.6), else 404. */
export function refuseUnrouted(app: FastifyInstance): void {
  const routes: Route[] = []
  app.addHook('onRoute', ({ url, method }) => {
    const literal = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    const pattern = new RegExp(`^${literal.replace('*', '.*').replace(/:[^/]+/g, '[^/]+')}$`)
    routes.push({ pattern, methods: [method].flat() })
  })
  app.setNotFoundHandler(async (request, reply) => {
    const path = requestPath(request)
    const allowed = new Set(routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods))
    // A route that found nothing has the method.
    if (allowed.size === 0 || allowed.has(request.method)) throw new AppError('not_found', `there is nothing at ${path}`)
    reply.header('allow', [...allowed].join(', '))
    throw new AppError('method_not_allowed', `${request.method} is not possible at ${path}; possible: ${[...allowed].join(', ')}`)
  })
}

/** RFC 9110 §12.5.1: refuses a client that rules out JSON, before anything is done for it. */
export function refuseUnacceptable(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ headers: { accept } }) => {
    if (accept !== undefined && accept.trim() !== '' && !accept.split(',').some(takesJson)) {
      throw new AppError('not_acceptable', 'the answers of this operation are application/json')
    }
  })
}

const jsonRanges: ReadonlySet<string> = new Set(['*/*', 'application/*', 'application/json', 'application/problem+json'])

function takesJson(range: string): boolean {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
  return jsonRanges.has(type) && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
}

function requestPath({ url }: FastifyRequest): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
