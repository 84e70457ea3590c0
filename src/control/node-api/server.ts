/**
 * The HTTP server for nodes, on a listener of its own: nothing else is reachable there, and no node is reachable at the management API.
 *
 * Owns: the credentials of nodes. Does not own: the routes, what every request is subject to (http-server.ts).
 */
import type { FastifyInstance } from 'fastify'
import { AppError } from '#errors.ts'
import { bearerToken } from '../authenticate.ts'
import { createHttpServer, type HttpServerOptions } from '../http-server.ts'
import type { JobLeases } from '../services/job-leases.ts'
import { rejectUnrouted } from '../unrouted.ts'
import { nodeJobRoutes } from './jobs.ts'
import { type NodeApiOptions, nodeApiRoutes } from './routes.ts'

export type NodeServerOptions = HttpServerOptions & {
  readonly services: NodeApiOptions & { readonly jobLeases: JobLeases }
  /** Compares in constant time. */
  readonly isNodeToken: (token: string) => boolean
}

export async function buildNodeServer({ services, isNodeToken, ...options }: NodeServerOptions): Promise<FastifyInstance> {
  const app = createHttpServer(options)
  rejectUnrouted(app)
  await app.register(
    async (api) => {
      api.addHook('onRequest', async (request) => {
        if (!isNodeToken(bearerToken(request))) throw new AppError('unauthorized', 'the node token is not valid')
      })
      await api.register(nodeApiRoutes(services))
      await api.register(nodeJobRoutes(services.jobLeases))
    },
    { prefix: '/internal/v1' },
  )
  return app
}
