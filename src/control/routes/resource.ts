import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'

type ResourceApp = Parameters<FastifyPluginCallbackZod>[0]

/**
 * The operations of one resource.
 *
 * Each has the resource's tag in the description, and responds with the only 2xx status that its schema declares.
 */
export function resource(tag: string, addOperations: (app: ResourceApp) => void): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.addHook('onRoute', ({ schema }) => {
      if (schema !== undefined) schema.tags = [tag]
    })
    app.addHook('preHandler', async ({ routeOptions }, reply) => {
      const success = Object.keys(routeOptions.schema?.response ?? {}).find((status) => status.startsWith('2'))
      if (success !== undefined) reply.code(Number(success))
    })
    addOperations(app)
    done()
  }
}
