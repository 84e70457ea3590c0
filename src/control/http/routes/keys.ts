import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { ApiKey, CreateApiKey, CreatedApiKey, RevokeKeyQuery } from '#model/api-key.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import type { Keys } from '../../resources/keys.ts'
import { resource } from './resource.ts'

export function keyRoutes(keys: Keys): FastifyPluginCallbackZod {
  return resource('Keys', (operation) => {
    operation('POST /keys', 'createKey', 'admin', {
      grantsAccess: true,
      summary: 'Create an API key; only this response contains the secret',
      body: CreateApiKey,
      response: { 201: CreatedApiKey },
      noStore: true,
      run: (request) => keys.create(request.principal, request.body),
    })

    operation('GET /keys', 'listKeys', 'admin', {
      summary: 'List API keys, newest first, including revoked ones',
      query: PageQuery,
      response: { 200: pageOf(ApiKey) },
      run: (request) => keys.list(request.principal, request.query),
    })

    operation('POST /keys/:id/revoke', 'revokeKey', 'admin', {
      auditedAs: ({ query }) => (isNow(query) ? 'revokeKeyNow' : 'revokeKey'),
      summary: 'Revoke an API key permanently',
      description:
        'Calls with the key are refused. Access tokens that were issued for it stay valid until they expire, 15 minutes at most, and MQTT connections until they next authenticate: this is how a key is replaced without an outage. If the key leaked, end all of it at once with `now=true`.',
      query: RevokeKeyQuery,
      response: { 200: ApiKey },
      run: (request) => keys.revoke(request.principal, request.params.id, { now: isNow(request.query) }),
    })
  })
}

function isNow(query: unknown): boolean {
  return typeof query === 'object' && query !== null && 'now' in query && query.now === 'true'
}
