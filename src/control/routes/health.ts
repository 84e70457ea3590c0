import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { secretsEqual } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'

/** Declared here, given by the composition. */
export type Health = {
  /** False when the database cannot be read, or while stopping. */
  readonly isReady: () => Promise<boolean>
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> }
  /** Null where anybody who reaches this server may read the metrics. */
  readonly metricsToken: string | null
}

export function healthRoutes({ isReady, metrics, metricsToken }: Health): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.get('/healthz', { config: { scope: 'public' } }, async () => ({ status: 'ok' }))
    app.get('/readyz', { config: { scope: 'public' } }, async () => {
      if (!(await isReady())) throw new AppError('unavailable', 'not ready to serve', { retryAfterSeconds: 1 })
      return { status: 'ok' }
    })
    app.get('/metrics', { config: { scope: 'public' } }, async (request, reply) => {
      if (metricsToken !== null && !secretsEqual(request.headers.authorization ?? '', `Bearer ${metricsToken}`)) {
        throw new AppError('unauthorized', 'send INLET_METRICS_TOKEN as Authorization: Bearer')
      }
      reply.type(metrics.contentType)
      return metrics.metrics()
    })
    done()
  }
}
