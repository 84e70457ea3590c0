import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { PageQuery, pageOf } from '#model/page.ts'
import { CreateSecret, RotateSecret, Secret, SetSecret } from '#model/secret.ts'
import type { Secrets } from '../../resources/secrets.ts'
import { problem } from '../openapi/openapi.ts'
import { Empty, resource } from './resource.ts'

export function secretRoutes(secrets: Secrets): FastifyPluginCallbackZod {
  return resource('Secrets', (operation) => {
    operation('POST /secrets', 'createSecret', 'admin', {
      summary: 'Create a secret that views can hash with',
      description:
        'Views name it in `hmac_sha256`. The API never returns a value that was sent. Without `value`, Inlet makes one at random, which only this response contains.',
      body: CreateSecret,
      response: { 201: SetSecret, 409: problem('the account has a secret of this name, or as many as it may') },
      noStore: true,
      run: (request) => secrets.create(request.principal, request.body),
    })

    operation('GET /secrets', 'listSecrets', 'admin', {
      summary: 'List secrets by name, without their values',
      query: PageQuery,
      response: { 200: pageOf(Secret) },
      run: (request) => secrets.list(request.principal, request.query),
    })

    operation('POST /secrets/:id/rotate', 'rotateSecret', 'admin', {
      summary: 'Replace the value of a secret',
      description:
        'Nodes hash with the new value from the next segment that they convert: equal texts have different hashes before and after. Backfills and re-drives use the new value, too. The old one is not kept.',
      body: RotateSecret,
      response: { 200: SetSecret },
      noStore: true,
      run: (request) => secrets.rotate(request.principal, request.params.id, request.body),
    })

    operation('DELETE /secrets/:id', 'deleteSecret', 'admin', {
      summary: 'Delete a secret that no published view names',
      response: { 204: Empty, 409: problem('a published version names it, or nodes may still have segments for one that did') },
      run: (request) => secrets.remove(request.principal, request.params.id),
    })
  })
}
