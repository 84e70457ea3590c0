import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Id } from '#model/id.ts'
import { EndpointSeries, SeriesQuery, ViewSeries } from '#model/series.ts'
import type { Series } from '../../resources/series.ts'
import { resource } from './resource.ts'

const ViewSeriesQuery = SeriesQuery.extend({
  endpoint_id: Id.optional().meta({
    description: 'what the versions did on this endpoint; the sum over all endpoints if not set',
  }),
})

export function endpointSeriesRoutes(series: Series): FastifyPluginCallbackZod {
  return resource('Endpoints', (operation) => {
    operation('GET /endpoints/:id/series', 'getEndpointSeries', 'metrics', {
      summary: 'Get what an endpoint accepted, refused and delivered over time, also of a deleted one',
      query: SeriesQuery,
      response: { 200: EndpointSeries },
      run: (request) => series.ofEndpoint(request.principal, request.params.id, request.query),
    })
  })
}

export function viewSeriesRoutes(series: Series): FastifyPluginCallbackZod {
  return resource('Views', (operation) => {
    operation('GET /views/:id/series', 'getViewSeries', 'metrics', {
      summary: 'Get what all versions of a view accepted, dropped and rejected over time',
      query: ViewSeriesQuery,
      response: { 200: ViewSeries },
      run: (request) => series.ofView(request.principal, request.params.id, request.query),
    })
  })
}
