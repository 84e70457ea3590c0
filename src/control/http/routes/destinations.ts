import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { ChangeDestination, CreateDestination, Destination, DestinationWithCount } from '#model/destination.ts'
import { ValidatedDestination } from '#model/destination-validation.ts'
import { ObjectStoreSettings } from '#model/object-store.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import type { Destinations } from '../../resources/destinations.ts'
import { problem } from '../openapi/openapi.ts'
import { ById, Empty } from './parameters.ts'
import { type ResourceApp, resource } from './resource.ts'

const nameTaken = problem('another destination of the account has this name')

export function destinationRoutes(destinations: Destinations): FastifyPluginCallbackZod {
  return resource('Destinations', (app) => {
    addDestinations(app, destinations)
    addStores(app, destinations)
  })
}

function addDestinations(app: ResourceApp, destinations: Destinations): void {
  app.post(
    '/destinations',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'createDestination',
        summary: 'Create a destination',
        body: CreateDestination,
        response: { 201: Destination, 409: nameTaken },
      },
    },
    (request) => destinations.create(request.principal, request.body),
  )

  app.get(
    '/destinations',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'listDestinations',
        summary: 'List destinations, newest first',
        querystring: PageQuery,
        response: { 200: pageOf(DestinationWithCount) },
      },
    },
    (request) => destinations.list(request.principal, request.query),
  )

  app.get(
    '/destinations/:id',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'getDestination',
        summary: 'Get a destination',
        params: ById,
        response: { 200: DestinationWithCount },
      },
    },
    (request) => destinations.get(request.principal, request.params.id),
  )

  app.patch(
    '/destinations/:id',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'changeDestination',
        summary: 'Change a destination; anything but a new name makes it pending again',
        params: ById,
        body: ChangeDestination,
        response: { 200: Destination, 409: nameTaken },
      },
    },
    (request) => destinations.change(request.principal, request.params.id, request.body),
  )

  app.delete(
    '/destinations/:id',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'deleteDestination',
        summary: 'Delete a destination that no endpoint uses',
        params: ById,
        response: { 204: Empty, 409: problem('an endpoint still uses the destination') },
      },
    },
    (request) => destinations.remove(request.principal, request.params.id),
  )
}

function addStores(app: ResourceApp, destinations: Destinations): void {
  app.post(
    '/destinations/:id/validate',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'validateDestination',
        summary: 'Validate a destination: try each step of a delivery with a test object, and record the result',
        params: ById,
        response: {
          200: ValidatedDestination,
          429: problem('it was validated less than 30 seconds ago, or too many requests'),
        },
      },
    },
    (request) => destinations.validate(request.principal, request.params.id),
  )

  app.get(
    '/object-store',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'getObjectStore',
        summary: 'Get what a new destination needs: where objects are stored, whom its role must trust, settings that fit',
        response: { 200: ObjectStoreSettings },
      },
    },
    (request) => destinations.storeSettings(request.principal),
  )
}
