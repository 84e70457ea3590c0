import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import {
  ScrubCommits,
  ScrubCommitsRequest,
  ScrubEndpoints,
  ScrubEndpointsRequest,
  ScrubKnown,
  ScrubKnownRequest,
} from '#model/scrub.ts'
import type { Scrubs } from '../../fleet/scrubs.ts'

/** The node API for scrubs: `model/scrub.ts`. */
export function nodeScrubRoutes(scrubs: Scrubs): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.post('/scrub/endpoints', { schema: { body: ScrubEndpointsRequest, response: { 200: ScrubEndpoints } } }, (request) =>
      scrubs.endpoints(request.node, request.body),
    )

    app.post('/scrub/commits', { schema: { body: ScrubCommitsRequest, response: { 200: ScrubCommits } } }, (request) =>
      scrubs.commits(request.node, request.body),
    )

    app.post('/scrub/known', { schema: { body: ScrubKnownRequest, response: { 200: ScrubKnown } } }, (request) =>
      scrubs.known(request.node, request.body),
    )
    done()
  }
}
