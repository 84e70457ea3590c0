/**
 * The HTTP server for nodes, on a listener of its own: nothing else is reachable there, and no node is reachable at the management API.
 *
 * Owns: which node calls. Does not own: what it may do (fleet/node-access.ts), the routes, what every request is subject to (http-server.ts).
 * Law: every route but `join` and `ca` is called under the credential of a node, and names no other node. `left-on-disk` is called under one
 * that is refused everywhere else.
 */
import type { X509Certificate } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AppError } from '#errors.ts'
import type { FormerMachine } from '#store/commits/left-on-disk.ts'
import type { JobLeases } from '../../fleet/job-leases.ts'
import type { LeftOnDisks } from '../../fleet/left-on-disk.ts'
import type { JoinGrant, NodeAccess, NodeIdentity } from '../../fleet/node-access.ts'
import type { Scrubs } from '../../fleet/scrubs.ts'
import type { TakeOvers } from '../../fleet/take-overs.ts'
import { controlLimits } from '../../limits.ts'
import { bearerToken } from '../requests/authenticate.ts'
import { createHttpServer, type HttpServerOptions } from '../requests/http-server.ts'
import { rejectUnrouted } from '../requests/unrouted.ts'
import { BodyBudget } from './body-budget.ts'
import { nodeJobRoutes } from './jobs.ts'
import { leftOnDiskRoute } from './left-on-disk.ts'
import { adoptRoute, joinRoute, type NodeApiOptions, nodeApiRoutes, rootRoute, takeOverRoutes } from './routes.ts'
import { nodeScrubRoutes } from './scrub.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every route of the node API but `join` and `ca`. On `left-on-disk`, the node whose place that was. */
    node: NodeIdentity
    /** Set on `join`. */
    joinGrant: JoinGrant
    /** Set on `left-on-disk`. */
    formerMachine: FormerMachine
  }
}

export type NodeServerOptions = HttpServerOptions & {
  readonly access: NodeAccess
  /** Returns the root that the certificate of this server chains to, if join tokens pin it. */
  readonly rootCertificate: () => X509Certificate | undefined
  readonly services: NodeApiOptions & {
    readonly jobLeases: JobLeases
    readonly scrubs: Scrubs
    readonly leftOnDisks: LeftOnDisks
    readonly takeOvers: TakeOvers
  }
}

export async function buildNodeServer(options: NodeServerOptions): Promise<FastifyInstance> {
  const { access, services, rootCertificate } = options
  const app = createHttpServer({ ...options, isForNodes: true })
  rejectUnrouted(app)
  const prefix = '/internal/v1'
  app.decorateRequest('node')
  app.decorateRequest('joinGrant')
  app.decorateRequest('formerMachine')
  const budget = new BodyBudget(controlLimits.nodeBodiesBytesMax)
  await app.register(rootRoute(rootCertificate), { prefix })
  await app.register(
    async (joining) => {
      joining.addHook('onRequest', async (request) => {
        request.joinGrant = await access.admit(bearerToken(request))
      })
      await joining.register(joinRoute(access))
    },
    { prefix },
  )
  await app.register(
    async (former) => {
      former.addHook('onRequest', async (request, reply) => {
        const machine = await access.verifyFormer(bearerToken(request))
        request.formerMachine = machine
        request.node = { id: machine.node_id, region: machine.region ?? '' }
        reply.raw.once('close', budget.take(request))
      })
      former.addHook('preHandler', requireOwnId)
      await former.register(leftOnDiskRoute(services.leftOnDisks))
    },
    { prefix },
  )
  await app.register(
    async (api) => {
      const verify = async (request: FastifyRequest) => {
        request.node = await access.verify(bearerToken(request))
      }
      api.addHook('onRequest', verify)
      api.addHook('onRequest', async (request, reply) => {
        reply.raw.once('close', budget.take(request))
      })
      // The body may have arrived slowly, and the credential may have been revoked meanwhile.
      api.addHook('preHandler', verify)
      api.addHook('preHandler', requireOwnId)
      // A long poll takes time, and the credential may have been revoked since it began.
      api.addHook('onSend', async (request, { statusCode }) => {
        if (request.routeOptions.url === `${prefix}/snapshot` && statusCode === 200) await verify(request)
      })
      await api.register(adoptRoute(access))
      await api.register(takeOverRoutes(services.takeOvers))
      await api.register(nodeApiRoutes(services))
      await api.register(nodeJobRoutes(services.jobLeases))
      await api.register(nodeScrubRoutes(services.scrubs))
    },
    { prefix },
  )
  return app
}

async function requireOwnId({ node, body, query }: FastifyRequest): Promise<void> {
  for (const part of [body, query] as readonly ({ readonly node_id?: unknown } | null)[])
    if ((part?.node_id ?? node.id) !== node.id) throw new AppError('forbidden', 'the credential is that of another node')
}
