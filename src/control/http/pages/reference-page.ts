import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'

/** The path of the page and all its files; nothing is loaded from elsewhere. */
export const referencePrefix = '/openapi'

/** Allows only content from this origin. Swagger UI needs inline styles. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const css = '.swagger-ui .topbar { display: none } .swagger-ui .info { margin: 24px 0 }'

/** Serves the interactive reference: Swagger UI for the OpenAPI description. */
export async function serveReferencePage(app: FastifyInstance): Promise<void> {
  await app.register(swaggerUi, {
    routePrefix: referencePrefix,
    staticCSP: contentSecurityPolicy,
    uiConfig: { deepLinking: true, docExpansion: 'list', displayRequestDuration: true, tryItOutEnabled: true },
    theme: { title: 'Inlet management API', css: [{ filename: 'inlet.css', content: css }] },
  })
}
