import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Id } from '#model/id.ts'
import { EndpointSeries, SeriesQuery, ViewSeries } from '#model/series.ts'
import type { Series } from '../../resources/series.ts'
import { ById } from './parameters.ts'
import { resource } from './resource.ts'

const ViewSeriesQuery = SeriesQuery.extend({
  endpoint_id: Id.optional().meta({
    description: 'what the versions did on this endpoint; the sum over all endpoints if not set',
  }),
})

export function endpointSeriesRoutes(series: Series): FastifyPluginCallbackZod {
  return resource('Endpoints', (app) => {
    app.get(
      '/endpoints/:id/series',
      {
        config: { scope: 'metrics' },
        schema: {
          operationId: 'getEndpointSeries',
          summary: 'Get what an endpoint accepted, refused and delivered over time, also of a deleted one',
          params: ById,
          querystring: SeriesQuery,
          response: { 200: EndpointSeries },
        },
      },
      (request) => series.ofEndpoint(request.principal, request.params.id, request.query),
    )
  })
}

export function viewSeriesRoutes(series: Series): FastifyPluginCallbackZod {
  return resource('Views', (app) => {
    app.get(
      '/views/:id/series',
      {
        config: { scope: 'metrics' },
        schema: {
          operationId: 'getViewSeries',
          summary: 'Get what all versions of a view accepted, dropped and rejected over time',
          params: ById,
          querystring: ViewSeriesQuery,
          response: { 200: ViewSeries },
        },
      },
      (request) => series.ofView(request.principal, request.params.id, request.query),
    )
  })
}
