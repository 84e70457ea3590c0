import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AttachedView, AttachView, BindingList, BindingsQuery } from '#model/binding.ts'
import type { Bindings } from '../../resources/bindings.ts'
import { problem } from '../openapi/openapi.ts'
import { ByBinding, ByEndpoint, Empty } from './parameters.ts'
import { resource } from './resource.ts'

export function bindingRoutes(bindings: Bindings): FastifyPluginCallbackZod {
  return resource('Bindings', (app) => {
    app.post(
      '/endpoints/:endpoint_id/views',
      {
        config: { scope: 'admin' },
        schema: {
          operationId: 'attachView',
          summary: 'Attach a published view to an endpoint',
          params: ByEndpoint,
          body: AttachView,
          response: {
            201: AttachedView,
            409: problem(
              'the view is attached to the endpoint already, the endpoint is being deleted, or nodes may still need too many detached views of it',
            ),
          },
        },
      },
      (request) => bindings.attach(request.principal, request.params.endpoint_id, request.body),
    )

    app.get(
      '/endpoints/:endpoint_id/views',
      {
        config: { scope: 'any' },
        schema: {
          operationId: 'listBindings',
          summary: 'List the views of an endpoint, attached and detached: all of them, or a page',
          params: ByEndpoint,
          querystring: BindingsQuery,
          response: { 200: BindingList },
        },
      },
      (request) => bindings.list(request.principal, request.params.endpoint_id, request.query),
    )

    app.delete(
      '/endpoints/:endpoint_id/views/:binding_id',
      {
        config: { scope: 'admin' },
        schema: {
          operationId: 'detachView',
          summary: 'Detach a view from an endpoint',
          params: ByBinding,
          response: { 204: Empty },
        },
      },
      (request) => bindings.detach(request.principal, request.params.endpoint_id, request.params.binding_id),
    )
  })
}
