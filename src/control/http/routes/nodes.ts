import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { LogOwner, Node, NodeLog, NodeRemoval } from '#model/node.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import type { Inventory } from '../../fleet/inventory.ts'
import { problem } from '../openapi/openapi.ts'
import { ById, Empty } from './parameters.ts'
import { resource } from './resource.ts'

const SegmentsQuery = PageQuery.extend({ owner: LogOwner.optional() })

const RevokeQuery = z.strictObject({
  release: z.enum(['true', 'false']).default('false').meta({
    description:
      '`true` also releases the id: any node with a join token or the join secret may register under it, for example after its disk was lost',
  }),
})

const RemoveQuery = z.strictObject({
  force: z.enum(['true', 'false']).default('false').meta({
    description: '`true` also removes a node that runs, or whose disk holds data that was not delivered',
  }),
})

/** The operator's view of the nodes. It spans all accounts. */
export function nodeRoutes(inventory: Inventory): FastifyPluginCallbackZod {
  return resource('Nodes', (app) => {
    app.get(
      '/nodes',
      {
        config: { scope: 'operator' },
        schema: {
          operationId: 'listNodes',
          summary: 'List nodes, their health and what is on their disks',
          querystring: PageQuery,
          response: { 200: pageOf(Node) },
        },
      },
      (request) => inventory.listNodes(request.query),
    )

    app.get(
      '/nodes/:id/segments',
      {
        config: { scope: 'operator' },
        schema: {
          operationId: 'listNodeSegments',
          summary: 'List what a node holds of each endpoint, also of deleted and unknown ones',
          params: ById,
          querystring: SegmentsQuery,
          response: { 200: pageOf(NodeLog), 404: problem('there is no such node') },
        },
      },
      ({ params, query: { owner, ...page } }) => inventory.listSegments(params.id, page, owner),
    )

    app.delete(
      '/nodes/:id',
      {
        config: { scope: 'operator' },
        schema: {
          operationId: 'removeNode',
          summary: 'Remove a node: drains no longer wait for it, and control refuses its credential',
          params: ById,
          querystring: RemoveQuery,
          response: {
            200: NodeRemoval,
            404: problem('there is no such node'),
            409: problem('the node runs, or its removal would abandon what it holds; `detail` says what'),
          },
        },
      },
      ({ params, query }) => inventory.remove(params.id, query.force === 'true'),
    )

    app.delete(
      '/nodes/:id/credential',
      {
        config: { scope: 'operator' },
        schema: {
          operationId: 'revokeNodeCredential',
          summary: 'Revoke the credential of a node',
          description:
            'Control refuses it at once. The node registers again by itself if it has a join token that is still active, or the join secret (`INLET_NODE_TOKEN`): revoke the token or change the secret first to keep it out.',
          params: ById,
          querystring: RevokeQuery,
          response: { 204: Empty, 404: problem('there is no such node') },
        },
      },
      async ({ params, query }, reply) => {
        await inventory.revokeCredential(params.id, query.release === 'true')
        return reply.code(204).send()
      },
    )
  })
}
