import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ChangeNode, LogOwner, Node, NodeLog, NodeRemoval } from '#model/node.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import type { Inventory } from '../../fleet/node-inventory.ts'
import { problem } from '../openapi/openapi.ts'
import { Empty, resource } from './resource.ts'

const SegmentsQuery = PageQuery.extend({ owner: LogOwner.optional() })

const RevokeQuery = z.strictObject({
  release: z.enum(['true', 'false']).default('false').meta({
    description:
      '`true` also releases the id: any node with a join token or the join secret may register under it, for example after its disk was lost. What the node last reported to hold is then a loss (`GET /v1/losses`), and its machine stops if it still runs',
  }),
  force: z.enum(['true', 'false']).default('false').meta({
    description: '`true` also releases the id of a node that runs. A revocation needs no force',
  }),
})

const RemoveQuery = z.strictObject({
  force: z.enum(['true', 'false']).default('false').meta({
    description: '`true` also removes a node that runs, or whose disk holds data that was not delivered',
  }),
})

/** The operator's view of the nodes. It spans all accounts. */
export function nodeRoutes(inventory: Inventory): FastifyPluginCallbackZod {
  return resource('Nodes', (operation) => {
    operation('GET /nodes', 'listNodes', 'operator', {
      summary: 'List nodes, their health and what is on their disks',
      query: PageQuery,
      response: { 200: pageOf(Node) },
      run: (request) => inventory.listNodes(request.query),
    })

    operation('PATCH /nodes/:id', 'changeNode', 'operator', {
      summary: 'Name a node',
      body: ChangeNode,
      response: { 200: Node, 404: problem('there is no such node'), 409: problem('another node has this name') },
      run: ({ params, body }) => inventory.change(params.id, body),
    })

    operation('GET /nodes/:id/segments', 'listNodeSegments', 'operator', {
      summary: 'List what a node holds of each endpoint, also of deleted and unknown ones',
      query: SegmentsQuery,
      response: { 200: pageOf(NodeLog), 404: problem('there is no such node') },
      run: ({ params, query: { owner, ...page } }) => inventory.listSegments(params.id, page, owner),
    })

    operation('DELETE /nodes/:id', 'removeNode', 'operator', {
      summary: 'Remove a node: drains no longer wait for it, and control refuses its credential',
      query: RemoveQuery,
      response: {
        200: NodeRemoval,
        404: problem('there is no such node'),
        409: problem('the node runs, or its removal would abandon what it holds; `detail` says what'),
      },
      run: ({ params, query }) => inventory.remove(params.id, query.force === 'true'),
    })

    operation('DELETE /nodes/:id/credential', 'revokeNodeCredential', 'operator', {
      summary: 'Revoke the credential of a node',
      description:
        'Control refuses it at once. The node registers again by itself if it has a join token that is still active, or the join secret (`INLET_NODE_TOKEN`): revoke the token or change the secret first to keep it out. If the node was removed, or its id released, control no longer believes what its machine says is left on its disk.',
      query: RevokeQuery,
      response: {
        204: Empty,
        404: problem('there is no such node'),
        409: problem('its id would be released while the node runs'),
      },
      run: async ({ params, query }) => {
        if (query.release === 'true') await inventory.release(params.id, query.force === 'true')
        else await inventory.revokeCredential(params.id)
      },
    })
  })
}
