import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { ChangeDestination, CreateDestination, Destination, DestinationWithCount } from '#model/destination.ts'
import { ValidatedDestination } from '#model/destination-validation.ts'
import { ObjectStoreSettings } from '#model/object-store.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import type { Destinations } from '../../resources/destinations.ts'
import { problem } from '../openapi/openapi.ts'
import { type AddOperation, Empty, resource } from './resource.ts'

const nameTaken = problem('another destination of the account has this name')

export function destinationRoutes(destinations: Destinations): FastifyPluginCallbackZod {
  return resource('Destinations', (operation) => {
    addDestinations(operation, destinations)
    addStores(operation, destinations)
  })
}

function addDestinations(operation: AddOperation, destinations: Destinations): void {
  operation('POST /destinations', 'createDestination', 'admin', {
    summary: 'Create a destination',
    body: CreateDestination,
    response: { 201: Destination, 409: nameTaken },
    run: (request) => destinations.create(request.principal, request.body),
  })

  operation('GET /destinations', 'listDestinations', 'metrics', {
    summary: 'List destinations, newest first',
    query: PageQuery,
    response: { 200: pageOf(DestinationWithCount) },
    run: (request) => destinations.list(request.principal, request.query),
  })

  operation('GET /destinations/:id', 'getDestination', 'metrics', {
    summary: 'Get a destination',
    response: { 200: DestinationWithCount },
    run: (request) => destinations.get(request.principal, request.params.id),
  })

  operation('PATCH /destinations/:id', 'changeDestination', 'admin', {
    summary: 'Change a destination; anything but a new name makes it pending again',
    body: ChangeDestination,
    response: { 200: Destination, 409: nameTaken },
    run: (request) => destinations.change(request.principal, request.params.id, request.body),
  })

  operation('DELETE /destinations/:id', 'deleteDestination', 'admin', {
    summary: 'Delete a destination that no endpoint uses',
    response: { 204: Empty, 409: problem('an endpoint still uses the destination') },
    run: (request) => destinations.remove(request.principal, request.params.id),
  })
}

function addStores(operation: AddOperation, destinations: Destinations): void {
  operation('POST /destinations/:id/validate', 'validateDestination', 'admin', {
    summary: 'Validate a destination: try each step of a delivery with a test object, and record the result',
    response: {
      200: ValidatedDestination,
      429: problem('it was validated less than 30 seconds ago, or too many requests'),
    },
    run: (request) => destinations.validate(request.principal, request.params.id),
  })

  operation('GET /object-store', 'getObjectStore', 'metrics', {
    summary: 'Get what a new destination needs: where objects are stored, whom its role must trust, settings that fit',
    response: { 200: ObjectStoreSettings },
    run: (request) => destinations.storeSettings(request.principal),
  })
}
