/**
 * Responds with 304 to a caller that has the response already (RFC 9110 §13.1.2), so that a screen can poll every two seconds.
 *
 * Owns: the `ETag` of every GET of the management API. Does not own: how often a caller polls.
 * Law: the tag is made of the body alone. Equal tags mean equal bodies, for any caller and account.
 */
import { hash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'

/** Browsers keep the response and ask before they use it again. A route that sets `no-store` has no tag. */
const askFirst = 'private, no-cache'

export function skipUnchanged(api: FastifyInstance): void {
  api.addHook('onSend', async ({ method, headers }, reply, payload) => {
    if ((method !== 'GET' && method !== 'HEAD') || reply.statusCode !== 200 || reply.hasHeader('cache-control')) return payload
    if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload
    const tag = `"${hash('sha1', payload, 'base64url')}"`
    reply.header('etag', tag).header('cache-control', askFirst)
    if (!names(headers['if-none-match'], tag)) return payload
    reply.code(304).removeHeader('content-type')
    // Fastify itself takes the body off a HEAD.
    return method === 'HEAD' ? payload : null
  })
}

/** A proxy that compresses makes the tag a weak one. */
function names(ifNoneMatch: string | undefined, tag: string): boolean {
  const given = ifNoneMatch?.split(',').map((each) => each.trim().replace(/^W\//, ''))
  return given?.some((each) => each === '*' || each === tag) ?? false
}
