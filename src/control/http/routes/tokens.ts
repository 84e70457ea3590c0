import type { RateLimitOptions } from '@fastify/rate-limit'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AccessToken, ExchangeToken } from '#model/token.ts'
import type { Tokens } from '../../resources/tokens.ts'
import { problem } from '../openapi/openapi.ts'
import { resource } from './resource.ts'

/** Rate-limited by client address: the caller is not authenticated yet, and an attacker would guess keys here. */
export function tokenRoutes(tokens: Tokens, rateLimit: RateLimitOptions): FastifyPluginCallbackZod {
  return resource('Token', (operation) => {
    operation('POST /token/exchange', 'exchangeToken', 'public', {
      rateLimit,
      summary: 'Exchange an API key for an access token',
      body: ExchangeToken,
      response: {
        200: AccessToken,
        401: problem('the API key is unknown or revoked'),
        403: problem('the API key does not hold the scope'),
      },
      // RFC 6749 §5.1
      noStore: true,
      run: (request) => tokens.exchange(request.body),
    })
  })
}

/** Publishes the public keys of access tokens at the customary path; RFC 8414 does not fix one. */
export function jwksRoutes(tokens: Tokens): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.get('/.well-known/jwks.json', { config: { scope: 'public' } }, async (_request, reply) => {
      reply.header('cache-control', 'public, max-age=60')
      return tokens.jwks()
    })
    done()
  }
}
