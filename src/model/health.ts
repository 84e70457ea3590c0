/** Responses of `/healthz` and `/readyz`, the same on every process that listens. */
import { AppError } from '#errors.ts'

/** Body of a 200. */
export const healthy = { status: 'ok' } as const

const retryAfterSeconds = 1

/** Returns the 503 of `/readyz`: a problem that also lists `reasons`, one sentence each. */
export function notReady(reasons: readonly string[]): AppError {
  return new AppError('unavailable', `not ready: ${reasons.join('; ')}`, { retryAfterSeconds, reasons })
}
