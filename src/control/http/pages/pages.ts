import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AppError } from '#errors.ts'
import { findErrorPage } from '#pages/errors.ts'
import { jsonPage, prefersJson } from '#pages/html.ts'
import type { SendConsole } from './console.ts'

/** Pages for people who open the address of control, or the `type` of an error. */
export function pageRoutes(baseUrl: string, sendConsole: SendConsole | undefined): FastifyPluginCallbackZod {
  const overview = jsonPage({
    service: 'inlet control',
    management_api: `${baseUrl}/v1`,
    description: `${baseUrl}/openapi/openapi.json`,
    reference: `${baseUrl}/openapi/`,
    errors: `${baseUrl}/errors`,
  })
  return (app, _options, done) => {
    app.get('/', { config: { scope: 'public' } }, async ({ headers }, reply) => {
      if (prefersJson(headers.accept)) return reply.headers(overview.headers).send(overview.body)
      reply.header('vary', 'accept')
      // Relative, so that it works behind a proxy that adds a path.
      return sendConsole === undefined ? reply.redirect('openapi/') : sendConsole(reply)
    })
    for (const path of ['/errors', '/errors/', '/errors/:code'])
      app.get(path, { config: { scope: 'public' } }, async ({ url, headers }, reply) => {
        const page = findErrorPage(url.replace(/\?.*$/s, ''), headers.accept)
        if (page === undefined) throw new AppError('not_found', 'there is no such error; GET /errors lists all of them')
        return reply.headers(page.headers).send(page.body)
      })
    done()
  }
}
