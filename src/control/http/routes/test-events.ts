import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { SendTestEvent, TestEvent } from '#model/test-event.ts'
import type { TestEvents } from '../../resources/test-events.ts'
import { problem } from '../openapi/openapi.ts'
import { RequestShares } from '../requests/request-shares.ts'
import { resource } from './resource.ts'

/** Test events of an account at once. Each waits for ingest. */
const perAccountMax = 4

export function testEventRoutes(testEvents: TestEvents): FastifyPluginCallbackZod {
  return resource('Endpoints', (operation) => {
    const shares = new RequestShares({ what: 'send test events', perAccountMax })
    operation('POST /endpoints/:id/test-events', 'sendTestEvent', 'admin', {
      summary: 'Send one record through the ingest address of the endpoint, and return its receipt',
      body: SendTestEvent.optional(),
      response: { 200: TestEvent, 409: problem('ingest refused the record; `detail` has its words') },
      shares,
      run: (request) => testEvents.send(request.principal, request.params.id, request.body ?? {}),
    })
  })
}
