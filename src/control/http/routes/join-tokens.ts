import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { CreatedJoinToken, CreateJoinToken, JoinToken } from '#model/join-token.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import type { JoinTokens } from '../../fleet/join-tokens.ts'
import { problem } from '../openapi/openapi.ts'
import { ById, Empty } from './parameters.ts'
import { resource } from './resource.ts'

/** Tokens with which nodes join, for the operator. */
export function joinTokenRoutes(tokens: JoinTokens): FastifyPluginCallbackZod {
  return resource('Join tokens', (app) => {
    app.post(
      '/join-tokens',
      {
        config: { scope: 'operator' },
        schema: {
          operationId: 'createJoinToken',
          summary: 'Create a token with which nodes join; only this response contains it',
          body: CreateJoinToken,
          response: { 201: CreatedJoinToken },
        },
      },
      (request, reply) => {
        reply.header('cache-control', 'no-store')
        return tokens.create(request.body)
      },
    )

    app.get(
      '/join-tokens',
      {
        config: { scope: 'operator' },
        schema: {
          operationId: 'listJoinTokens',
          summary: 'List join tokens, newest first, also those that can no longer be used',
          querystring: PageQuery,
          response: { 200: pageOf(JoinToken) },
        },
      },
      (request) => tokens.list(request.query),
    )

    app.delete(
      '/join-tokens/:id',
      {
        config: { scope: 'operator' },
        schema: {
          operationId: 'revokeJoinToken',
          summary: 'Revoke a join token; nodes that joined with it stay',
          params: ById,
          response: { 204: Empty, 404: problem('there is no such join token') },
        },
      },
      async ({ params }, reply) => {
        await tokens.revoke(params.id)
        return reply.code(204).send()
      },
    )
  })
}
