import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Shadow, Shadows, StartShadow } from '#model/shadow.ts'
import type { Shadows as ShadowsService } from '../../resources/shadows.ts'
import { problem } from '../openapi/openapi.ts'
import { Empty, resource } from './resource.ts'

export function shadowRoutes(shadows: ShadowsService): FastifyPluginCallbackZod {
  return resource('Shadows', (operation) => {
    operation('POST /endpoints/:endpoint_id/shadows', 'startShadow', 'admin', {
      summary: 'Run a draft or a version on the segments of an endpoint, to be counted; it writes no files',
      body: StartShadow,
      response: {
        201: Shadow,
        409: problem(
          'the view shadows the endpoint already, or is attached to it, the endpoint has enough shadows, or it is being deleted',
        ),
      },
      run: (request) => shadows.start(request.principal, request.params.endpoint_id, request.body),
    })

    operation('GET /endpoints/:endpoint_id/shadows', 'listShadows', 'any', {
      summary: 'List the shadows of an endpoint',
      response: { 200: Shadows },
      run: (request) => shadows.list(request.principal, request.params.endpoint_id),
    })

    operation('DELETE /endpoints/:endpoint_id/shadows/:shadow_id', 'endShadow', 'admin', {
      summary: 'End a shadow; its figures stay until another one starts',
      response: { 204: Empty },
      run: (request) => shadows.end(request.principal, request.params.endpoint_id, request.params.shadow_id),
    })
  })
}
