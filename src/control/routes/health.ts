import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AppError } from '#errors.ts'

/** Declared here, given by the composition. */
export type Health = {
  /** False when the database cannot be read, or while stopping. */
  readonly isReady: () => Promise<boolean>
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> }
}

export function healthRoutes({ isReady, metrics }: Health): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.get('/healthz', { config: { scope: 'public' } }, async () => ({ status: 'ok' }))
    app.get('/readyz', { config: { scope: 'public' } }, async () => {
      if (!(await isReady())) throw new AppError('unavailable', 'not ready to serve', { retryAfterSeconds: 1 })
      return { status: 'ok' }
    })
    app.get('/metrics', { config: { scope: 'public' } }, async (_request, reply) => {
      reply.type(metrics.contentType)
      return metrics.metrics()
    })
    done()
  }
}
