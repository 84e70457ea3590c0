import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { secretsEqual } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import { healthy, notReady, ready } from '#model/health.ts'

/** Provided by the composition. */
export type Health = {
  /** Returns why this process is not ready for requests; empty if it is ready. */
  readonly notReadyReasons: () => Promise<readonly string[]>
  /** Returns what an operator should know although this process is ready; without anything that is not for everybody. */
  readonly readyNotes: () => readonly string[]
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> }
  /** Null if anyone who reaches this server may read the metrics. */
  readonly metricsToken: string | null
}

export function healthRoutes({ notReadyReasons, readyNotes, metrics, metricsToken }: Health): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.get('/healthz', { config: { scope: 'public' } }, async () => healthy)
    app.get('/readyz', { config: { scope: 'public' } }, async () => {
      const reasons = await notReadyReasons()
      if (reasons.length > 0) throw notReady(reasons)
      return ready(readyNotes())
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
