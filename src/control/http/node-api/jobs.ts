import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { LeaseRequest, Leases, UnitReports, UnitsReported } from '#model/job-protocol.ts'
import { nodeBodyPartsMax } from '#model/node-protocol.ts'
import type { JobLeases } from '../../fleet/job-leases.ts'
import { controlLimits } from '../../limits.ts'

/** The node API for jobs: `model/job-protocol.ts`. */
export function nodeJobRoutes(leases: JobLeases): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.post('/jobs/lease', { schema: { body: LeaseRequest, response: { 200: Leases } } }, (request) =>
      leases.lease(request.body, request.node.region),
    )

    app.post(
      '/jobs/report',
      {
        bodyLimit: controlLimits.commitsBodyBytesMax,
        config: { bodyPartsMax: nodeBodyPartsMax.jobReport },
        schema: { body: UnitReports, response: { 200: UnitsReported } },
      },
      (request) => leases.report(request.body),
    )
    done()
  }
}
