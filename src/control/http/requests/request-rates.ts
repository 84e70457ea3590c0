/** How often a caller may call, for all routes alike. */
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import { AppError } from '#errors.ts'

/** Names a caller by its address and the limit, because limits may share a store. */
export function byAddress(limit: string): (request: FastifyRequest) => string {
  return ({ ip }) => `${limit} ${normalizeIP(ip)}`
}

export function tooMany(waitMs: number): AppError {
  return new AppError('too_many_requests', 'too many requests; wait before the next one', {
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  })
}
