/** Shared parts of routes whose work is done elsewhere: in a process of its own, or by ingest. */
import type { FastifyReply } from 'fastify'
import { AppError } from '#errors.ts'

/** Sends the body of a response that another process has made. */
export function sendJson(reply: FastifyReply, json: Uint8Array): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}

export function signalDisconnect(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.once('close', () => gone.abort(new AppError('request_timeout', 'the client disconnected')))
  return gone.signal
}
