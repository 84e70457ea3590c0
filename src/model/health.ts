/** Responses of `/healthz` and `/readyz`, the same on every process that listens. */
import { AppError } from '#errors.ts'

/** Body of a 200. */
export const healthy = { status: 'ok' } as const

/** Returns the body of a 200 of `/readyz`. `notes` are sentences about what an operator should know. */
export function ready(notes: readonly string[]): object {
  return notes.length === 0 ? healthy : { ...healthy, notes }
}

const retryAfterSeconds = 1

/** Returns the 503 of `/readyz`: a problem that also lists `reasons`, one sentence each. */
export function notReady(reasons: readonly string[]): AppError {
  return new AppError('unavailable', `not ready: ${reasons.join('; ')}`, { retryAfterSeconds, reasons })
}
