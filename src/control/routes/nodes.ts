import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { LogOwner, Node, NodeLog } from '#model/node.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import { problem } from '../openapi.ts'
import type { Inventory } from '../services/inventory.ts'
import { ById } from './parameters.ts'
import { resource } from './resource.ts'

const SegmentsQuery = PageQuery.extend({ owner: LogOwner.optional() })

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
  })
}
