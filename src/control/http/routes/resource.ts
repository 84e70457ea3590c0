import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { AppError } from '#errors.ts'
import { CommitId } from '#model/commit.ts'
import { Id } from '#model/id.ts'
import { ReceiptId } from '#model/receipt.ts'
import type { problem } from '../openapi/openapi.ts'
import type { RouteScope } from '../requests/authenticate.ts'
import type { RequestShares } from '../requests/request-shares.ts'

/** A response without a body. */
export const Empty = z.undefined().describe('success, without a body')

/** Names in the path: `id` of `GET /views/:id`. */
type Names<Route extends string> = Route extends `${string}:${infer Name}/${infer Rest}`
  ? Name | Names<`/${Rest}`>
  : Route extends `${string}:${infer Name}`
    ? Name
    : never

type Call<Route extends string, Query, Body> = Omit<FastifyRequest, 'params' | 'query' | 'body'> & {
  readonly params: Readonly<Record<Names<Route>, string>>
  readonly query: z.output<Query>
  readonly body: z.output<Body>
}

/** A success by its schema, an error by its description. */
type Responses = Readonly<Record<number, z.ZodType | ReturnType<typeof problem>>>
type Returned<Declared> = {
  [Status in keyof Declared]: Declared[Status] extends z.ZodUndefined
    ? // biome-ignore lint/suspicious/noConfusingVoidType: a service that returns nothing
      void
    : Declared[Status] extends z.ZodType
      ? z.input<Declared[Status]>
      : never
}
type Result<Declared> = Returned<Declared>[keyof Declared] | FastifyReply

/** An operation of the management API: what it takes, and what it does. */
type Operation<Route extends string, Query, Body, Declared> = Pick<
  FastifyContextConfig,
  'grantsAccess' | 'auditedAs' | 'rateLimit'
> & {
  readonly summary: string
  readonly description?: string
  readonly query?: Query
  readonly body?: Body
  /** It responds with the only success, unless `run` sets another status. */
  readonly response: Declared
  readonly bodyLimit?: number
  /** Bounds the calls of an account at the same time. */
  readonly shares?: RequestShares
  /** No cache may keep the response: it has a secret. */
  readonly noStore?: true
  readonly run: (call: Call<Route, Query, Body>, reply: FastifyReply) => Result<Declared> | Promise<Result<Declared>>
}

export type AddOperation = <
  Route extends `${'GET' | 'POST' | 'PATCH' | 'DELETE'} /${string}`,
  Query extends z.ZodType,
  Body extends z.ZodType,
  const Declared extends Responses,
>(
  route: Route,
  operationId: string,
  scope: RouteScope,
  operation: Operation<Route, Query, Body, Declared>,
) => void

/**
 * The operations of one resource.
 *
 * Each has the resource's tag in the description. An operation that reads no body refuses one with fields: a caller that sends `{"now":true}` to
 * revoke a key expects an effect.
 */
export function resource(
  tag: string,
  addOperations: (operation: AddOperation, app: FastifyInstance) => void,
): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.addHook('preValidation', async ({ body, routeOptions }) => {
      if (routeOptions.schema?.body === undefined) refuseFields(body)
    })
    addOperations((...declared) => addRoute(app as unknown as FastifyInstance, tag, ...declared), app as never)
    done()
  }
}

function addRoute<Route extends string, Query, Body, Declared extends Responses>(
  app: FastifyInstance,
  tag: string,
  route: Route,
  operationId: string,
  scope: RouteScope,
  operation: Operation<Route, Query, Body, Declared>,
): void {
  const { grantsAccess, auditedAs, rateLimit, query: querystring, body, bodyLimit, shares, run } = operation
  const { summary, description, response, noStore } = operation
  const [method = '', url = ''] = route.split(' ')
  const params = paramsOf(url)
  const success = Number(Object.keys(response).find((status) => status.startsWith('2')))
  app.route({
    method: method as HTTPMethods,
    url,
    config: defined({ scope, grantsAccess, auditedAs, rateLimit }),
    schema: { tags: [tag], ...defined({ operationId, summary, description, params, querystring, body, response }) },
    ...defined({ bodyLimit, onRequest: shares && within(shares) }),
    handler(request, reply) {
      reply.code(success)
      if (noStore) reply.header('cache-control', 'no-store')
      return run(request as never, reply) as never
    },
  })
}

/** Named after their segments. All else has a UUID. */
const otherIds: Readonly<Record<string, z.ZodType>> = { commit_id: CommitId, receipt_id: ReceiptId }

function paramsOf(url: string): z.ZodType | undefined {
  const names = [...url.matchAll(/:(\w+)/g)].map(([, name = '']) => [name, otherIds[name] ?? Id] as const)
  return names.length === 0 ? undefined : z.object(Object.fromEntries(names))
}

function defined<Fields extends object>(fields: Fields): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
}

/** Reserves a slot before the body is read, until the response is sent. */
function within(shares: RequestShares): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  return async ({ principal }, reply) => {
    reply.raw.once('close', shares.reserve(principal))
  }
}

function refuseFields(body: unknown): void {
  if (typeof body !== 'object' || body === null) return
  // Where definitions are kept as bytes: control does not look into them.
  if (body instanceof Uint8Array) {
    if (['', '{}'].includes(Buffer.from(body).toString().trim())) return
    throw new AppError('validation_error', 'this operation reads no body: send none')
  }
  const errors = Object.keys(body).map((path) => ({ path, message: 'is not known: this operation reads no body' }))
  const [first] = errors
  if (first !== undefined) throw new AppError('validation_error', `${first.path}: ${first.message}`, { errors })
}
