/** Shared parts of routes whose work is done elsewhere: in a process of its own, or by ingest. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '#errors.ts'
import type { RequestShares } from '../requests/request-shares.ts'

/** Reserves a slot before the body is read, until the response is sent. */
export function within(shares: RequestShares): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  return async ({ principal }, reply) => {
    reply.raw.once('close', shares.admit(principal))
  }
}

/** Sends the body of a response that another process has made. */
export function sendJson(reply: FastifyReply, json: Uint8Array): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}

export function signalDisconnect(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.once('close', () => gone.abort(new AppError('request_timeout', 'the client disconnected')))
  return gone.signal
}
