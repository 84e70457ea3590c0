import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { ApiKey, CreateApiKey, CreatedApiKey } from '#model/api-key.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import type { Keys } from '../services/keys.ts'
import { ById } from './parameters.ts'
import { resource } from './resource.ts'

export function keyRoutes(keys: Keys): FastifyPluginCallbackZod {
  return resource('Keys', (app) => {
    app.post(
      '/keys',
      {
        config: { scope: 'admin' },
        schema: {
          operationId: 'createKey',
          summary: 'Create an API key; only this response contains the secret',
          body: CreateApiKey,
          response: { 201: CreatedApiKey },
        },
      },
      (request, reply) => {
        reply.header('cache-control', 'no-store')
        return keys.create(request.principal, request.body)
      },
    )

    app.get(
      '/keys',
      {
        config: { scope: 'admin' },
        schema: {
          operationId: 'listKeys',
          summary: 'List API keys, newest first, including revoked ones',
          querystring: PageQuery,
          response: { 200: pageOf(ApiKey) },
        },
      },
      (request) => keys.list(request.principal, request.query),
    )

    app.post(
      '/keys/:id/revoke',
      {
        config: { scope: 'admin' },
        schema: {
          operationId: 'revokeKey',
          summary: 'Revoke an API key permanently',
          params: ById,
          response: { 200: ApiKey },
        },
      },
      (request) => keys.revoke(request.principal, request.params.id),
    )
  })
}
