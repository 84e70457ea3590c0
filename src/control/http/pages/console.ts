/**
 * Serves the console, as `npm run build:console` built it.
 *
 * Owns: which paths are screens, and what a page of the console may load. Does not own: what the screens show (`console/`).
 * Law: a page loads nothing from elsewhere, and runs no script but ours.
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply } from 'fastify'

/** Screens begin with these paths, and `/`; the console decides what is at each (`console/src/router.tsx`). */
const screens = ['/sign-in', '/me', '/in/*', '/operate/*'] as const

/** The path of the files that screens load. */
export const consolePrefix = '/console/'

const builtConsole = join(import.meta.dirname, '../../../../console/dist')

/** Stands in the built page for a value that is new in each response. */
const noncePlaceholder = '__STYLE_NONCE__'

const neverChanges = 'public, max-age=31536000, immutable'

/** Sends the page that every screen begins with. */
export type SendConsole = (reply: FastifyReply) => FastifyReply

/** Returns undefined if the console was not built: the API works without it. */
export async function serveConsole(app: FastifyInstance): Promise<SendConsole | undefined> {
  const page = await readFile(join(builtConsole, 'index.html'), 'utf8').catch(() => undefined)
  if (page === undefined) return undefined
  const send: SendConsole = (reply) => {
    const nonce = randomBytes(16).toString('base64')
    reply.header('content-security-policy', contentSecurityPolicy(nonce)).header('cache-control', 'no-store')
    return reply.type('text/html; charset=utf-8').send(page.replace(noncePlaceholder, nonce))
  }
  await app.register(fastifyStatic, {
    root: join(builtConsole, consolePrefix),
    prefix: consolePrefix,
    wildcard: false,
    preCompressed: true,
    index: false,
    cacheControl: false,
    setHeaders: (reply, path) => reply.header('cache-control', path.includes('/assets/') ? neverChanges : 'public, max-age=300'),
  })
  for (const path of screens) app.get(path, { config: { scope: 'public' } }, async (_request, reply) => send(reply))
  return send
}

function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    // Components and the editor add style elements of their own.
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ')
}
