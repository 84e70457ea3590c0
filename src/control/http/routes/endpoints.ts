import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { CommitFiles, CommitId, CommitList, CommitsQuery } from '#model/commit.ts'
import { ChangeEndpoint, CreateEndpoint, Endpoint, EndpointName, EndpointStatus, ForcedDeletion } from '#model/endpoint.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import { NodeRegions } from '#model/region.ts'
import type { Commits } from '../../fleet/commits.ts'
import type { Endpoints } from '../../resources/endpoints.ts'
import { problem } from '../openapi/openapi.ts'
import { ById, Empty } from './parameters.ts'
import { type ResourceApp, resource } from './resource.ts'

const nameTaken = problem('another endpoint of the account has this name')
const beingDeleted = problem('the endpoint is being deleted')
const ByCommit = ById.extend({ commit_id: CommitId })
const ListQuery = PageQuery.extend({
  status: z.enum([...EndpointStatus.options, 'all']).default('all'),
  name: EndpointName.optional().meta({
    description: 'exact match: the `endpoint_name` of other lists',
    examples: ['checkout events'],
  }),
})
const DeleteQuery = z.strictObject({
  force: z.enum(['true', 'false']).default('false').meta({
    description: '`true` removes the endpoint at once and abandons what nodes still hold; works on a draining endpoint, too',
  }),
})
const deletedByForce = ForcedDeletion.describe('removed by force (`?force=true`), with what was abandoned')

export function endpointRoutes(endpoints: Endpoints, commits: Commits): FastifyPluginCallbackZod {
  return resource('Endpoints', (app) => {
    addEndpoints(app, endpoints)
    addLifeCycle(app, endpoints)
    addCommits(app, commits)
  })
}

function addEndpoints(app: ResourceApp, endpoints: Endpoints): void {
  app.post(
    '/endpoints',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'createEndpoint',
        summary: 'Create an endpoint',
        body: CreateEndpoint,
        response: { 201: Endpoint, 409: nameTaken },
      },
    },
    (request) => endpoints.create(request.principal, request.body),
  )

  app.get(
    '/endpoints',
    {
      config: { scope: 'any' },
      schema: {
        operationId: 'listEndpoints',
        summary: 'List endpoints, newest first',
        querystring: ListQuery,
        response: { 200: pageOf(Endpoint) },
      },
    },
    (request) => endpoints.list(request.principal, request.query),
  )

  app.get(
    '/regions',
    {
      config: { scope: 'any' },
      schema: { operationId: 'listRegions', summary: 'List the regions that have nodes', response: { 200: NodeRegions } },
    },
    () => endpoints.listRegions(),
  )

  app.get(
    '/endpoints/:id',
    {
      config: { scope: 'metrics' },
      schema: { operationId: 'getEndpoint', summary: 'Get an endpoint', params: ById, response: { 200: Endpoint } },
    },
    (request) => endpoints.get(request.principal, request.params.id),
  )

  app.patch(
    '/endpoints/:id',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'changeEndpoint',
        summary:
          'Change an endpoint; null restores a default, unbinds the destination or disables MQTT; mqtt_config is merged with the current one',
        params: ById,
        body: ChangeEndpoint,
        response: { 200: Endpoint, 409: nameTaken },
      },
    },
    (request) => endpoints.change(request.principal, request.params.id, request.body),
  )
}

function addLifeCycle(app: ResourceApp, endpoints: Endpoints): void {
  app.delete(
    '/endpoints/:id',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'deleteEndpoint',
        summary: 'Delete an endpoint: it rejects new data and is removed once all its data is delivered',
        params: ById,
        querystring: DeleteQuery,
        response: { 204: Empty, 200: deletedByForce },
      },
    },
    async ({ principal, params, query }, reply) => {
      if (query.force === 'true') return reply.code(200).send(await endpoints.removeByForce(principal, params.id))
      await endpoints.remove(principal, params.id)
      return reply.code(204).send()
    },
  )

  app.post(
    '/endpoints/:id/pause',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'pauseEndpoint',
        summary: 'Pause an endpoint: it rejects new data until it is resumed, and delivers the data it has',
        params: ById,
        response: { 200: Endpoint, 409: beingDeleted },
      },
    },
    (request) => endpoints.pause(request.principal, request.params.id),
  )

  app.post(
    '/endpoints/:id/resume',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'resumeEndpoint',
        summary: 'Resume a paused endpoint',
        params: ById,
        response: { 200: Endpoint, 409: beingDeleted },
      },
    },
    (request) => endpoints.resume(request.principal, request.params.id),
  )
}

function addCommits(app: ResourceApp, commits: Commits): void {
  app.get(
    '/endpoints/:id/commits',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'listCommits',
        summary: 'List the delivered segments of an endpoint, newest first, also of a deleted one',
        params: ById,
        querystring: CommitsQuery,
        response: { 200: CommitList },
      },
    },
    (request) => commits.list(request.principal, request.params.id, request.query),
  )

  app.get(
    '/endpoints/:id/commits/:commit_id/files',
    {
      // The files have payloads.
      config: { scope: 'query' },
      schema: {
        operationId: 'listCommitFiles',
        summary: 'Get a delivered segment with a link to each of its files, also of a deleted endpoint',
        params: ByCommit,
        response: { 200: CommitFiles },
      },
    },
    ({ principal, params }) => commits.listFiles(principal, params.id, params.commit_id),
  )
}
