import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { CommitFiles, CommitList, CommitsQuery } from '#model/commit.ts'
import {
  ChangedEndpoint,
  ChangeEndpoint,
  CreateEndpoint,
  Endpoint,
  EndpointName,
  EndpointStatus,
  ForcedDeletion,
} from '#model/endpoint.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import { NodeRegions } from '#model/region.ts'
import type { Commits } from '../../resources/commits.ts'
import type { Endpoints } from '../../resources/endpoints.ts'
import { problem } from '../openapi/openapi.ts'
import { type AddOperation, Empty, resource } from './resource.ts'

const nameTaken = problem('another endpoint of the account has this name')
const beingDeleted = problem('the endpoint is being deleted')
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
  return resource('Endpoints', (operation) => {
    addEndpoints(operation, endpoints)
    addLifeCycle(operation, endpoints)
    addCommits(operation, commits)
  })
}

function addEndpoints(operation: AddOperation, endpoints: Endpoints): void {
  operation('POST /endpoints', 'createEndpoint', 'admin', {
    summary: 'Create an endpoint',
    body: CreateEndpoint,
    response: { 201: Endpoint, 409: nameTaken },
    run: (request) => endpoints.create(request.principal, request.body),
  })

  operation('GET /endpoints', 'listEndpoints', 'any', {
    summary: 'List endpoints, newest first',
    query: ListQuery,
    response: { 200: pageOf(Endpoint) },
    run: (request) => endpoints.list(request.principal, request.query),
  })

  operation('GET /regions', 'listRegions', 'any', {
    summary: 'List the regions that have nodes',
    response: { 200: NodeRegions },
    run: () => endpoints.listRegions(),
  })

  operation('GET /endpoints/:id', 'getEndpoint', 'metrics', {
    summary: 'Get an endpoint',
    response: { 200: Endpoint },
    run: (request) => endpoints.get(request.principal, request.params.id),
  })

  operation('PATCH /endpoints/:id', 'changeEndpoint', 'admin', {
    summary:
      'Change an endpoint; null restores a default, unbinds the destination or disables MQTT; mqtt_config is merged with the current one',
    body: ChangeEndpoint,
    response: { 200: ChangedEndpoint, 409: nameTaken },
    run: (request) => endpoints.change(request.principal, request.params.id, request.body),
  })
}

function addLifeCycle(operation: AddOperation, endpoints: Endpoints): void {
  operation('DELETE /endpoints/:id', 'deleteEndpoint', 'admin', {
    summary: 'Delete an endpoint: it rejects new data and is removed once all its data is delivered',
    query: DeleteQuery,
    response: { 204: Empty, 200: deletedByForce },
    run: async ({ principal, params, query }, reply) => {
      if (query.force === 'true') return reply.code(200).send(await endpoints.removeByForce(principal, params.id))
      await endpoints.remove(principal, params.id)
      return reply.code(204).send()
    },
  })

  operation('POST /endpoints/:id/pause', 'pauseEndpoint', 'admin', {
    summary: 'Pause an endpoint: it rejects new data until it is resumed, and delivers the data it has',
    response: { 200: Endpoint, 409: beingDeleted },
    run: (request) => endpoints.pause(request.principal, request.params.id),
  })

  operation('POST /endpoints/:id/resume', 'resumeEndpoint', 'admin', {
    summary: 'Resume a paused endpoint',
    response: { 200: Endpoint, 409: beingDeleted },
    run: (request) => endpoints.resume(request.principal, request.params.id),
  })
}

function addCommits(operation: AddOperation, commits: Commits): void {
  operation('GET /endpoints/:id/commits', 'listCommits', 'metrics', {
    summary: 'List the delivered segments of an endpoint, newest first, also of a deleted one',
    query: CommitsQuery,
    response: { 200: CommitList },
    run: (request) => commits.list(request.principal, request.params.id, request.query),
  })

  operation('GET /endpoints/:id/commits/:commit_id/files', 'listCommitFiles', 'query', {
    // The files have payloads.
    summary: 'Get a delivered segment with a link to each of its files, also of a deleted endpoint',
    response: { 200: CommitFiles },
    run: ({ principal, params }) => commits.listFiles(principal, params.id, params.commit_id),
  })
}
