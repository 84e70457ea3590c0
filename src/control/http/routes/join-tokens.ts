import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { CreatedJoinToken, CreateJoinToken, JoinToken } from '#model/join-token.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import type { JoinTokens } from '../../fleet/join-tokens.ts'
import { problem } from '../openapi/openapi.ts'
import { Empty, resource } from './resource.ts'

/** Tokens with which nodes join, for the operator. */
export function joinTokenRoutes(tokens: JoinTokens): FastifyPluginCallbackZod {
  return resource('Join tokens', (operation) => {
    operation('POST /join-tokens', 'createJoinToken', 'operator', {
      summary: 'Create a token with which nodes join; only this response contains it',
      body: CreateJoinToken,
      response: { 201: CreatedJoinToken },
      noStore: true,
      run: (request) => tokens.create(request.body),
    })

    operation('GET /join-tokens', 'listJoinTokens', 'operator', {
      summary: 'List join tokens, newest first, also those that can no longer be used',
      query: PageQuery,
      response: { 200: pageOf(JoinToken) },
      run: (request) => tokens.list(request.query),
    })

    operation('DELETE /join-tokens/:id', 'revokeJoinToken', 'operator', {
      summary: 'Revoke a join token; nodes that joined with it stay',
      response: { 204: Empty, 404: problem('there is no such join token') },
      run: async ({ params }) => {
        await tokens.revoke(params.id)
      },
    })
  })
}
