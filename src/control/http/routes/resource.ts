import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AppError } from '#errors.ts'

export type ResourceApp = Parameters<FastifyPluginCallbackZod>[0]

/**
 * The operations of one resource.
 *
 * Each has the resource's tag in the description, and responds with the only 2xx status that its schema declares. An operation that reads no
 * body refuses one with fields: whoever sends `{"now":true}` to revoke a key expects an effect.
 */
export function resource(tag: string, addOperations: (app: ResourceApp) => void): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.addHook('onRoute', ({ schema }) => {
      if (schema !== undefined) schema.tags = [tag]
    })
    app.addHook('preValidation', async ({ body, routeOptions }) => {
      if (routeOptions.schema?.body === undefined) refuseFields(body)
    })
    app.addHook('preHandler', async ({ routeOptions }, reply) => {
      const success = Object.keys(routeOptions.schema?.response ?? {}).find((status) => status.startsWith('2'))
      if (success !== undefined) reply.code(Number(success))
    })
    addOperations(app)
    done()
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
