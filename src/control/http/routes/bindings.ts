import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AttachedView, AttachView, BindingList, BindingsQuery } from '#model/binding.ts'
import type { Bindings } from '../../resources/bindings.ts'
import { problem } from '../openapi/openapi.ts'
import { Empty, resource } from './resource.ts'

export function bindingRoutes(bindings: Bindings): FastifyPluginCallbackZod {
  return resource('Bindings', (operation) => {
    operation('POST /endpoints/:endpoint_id/views', 'attachView', 'admin', {
      summary: 'Attach a published view to an endpoint',
      body: AttachView,
      response: {
        201: AttachedView,
        409: problem(
          'the view is attached to the endpoint already, the endpoint is being deleted, or nodes may still need too many detached views of it',
        ),
      },
      run: (request) => bindings.attach(request.principal, request.params.endpoint_id, request.body),
    })

    operation('GET /endpoints/:endpoint_id/views', 'listBindings', 'any', {
      summary: 'List the views of an endpoint, attached and detached: all of them, or a page',
      query: BindingsQuery,
      response: { 200: BindingList },
      run: (request) => bindings.list(request.principal, request.params.endpoint_id, request.query),
    })

    operation('DELETE /endpoints/:endpoint_id/views/:binding_id', 'detachView', 'admin', {
      summary: 'Detach a view from an endpoint',
      response: { 204: Empty },
      run: (request) => bindings.detach(request.principal, request.params.endpoint_id, request.params.binding_id),
    })
  })
}
