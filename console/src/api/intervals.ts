import { ApiError } from './client.ts'

/** How often a screen asks again while it is looked at. A hidden tab asks for nothing. */

/** For what moves while one watches. */
export const movingMs = 2_000

/** For what changes now and then. */
export const slowMs = 10_000

type State = { readonly state: { readonly error: unknown } }

/** Asks again at this interval, until the thing is gone: its screen says so, and nothing brings it back. */
export function whileThere(intervalMs: number) {
  return ({ state: { error } }: State): number | false => (isMissing(error) ? false : intervalMs)
}

/** Whether it does not exist, or not any more. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404
}

/** Whether the same call may succeed later: it did not reach control, or control failed. A refusal stays one. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 0 || error.status >= 500
}

/** Retries failed queries that have no interval of their own, so that a screen recovers by itself. */
export function retryInterval({
  state: { status, error },
}: {
  readonly state: { status: string; error: unknown }
}): number | false {
  return status === 'error' && isPassing(error) ? slowMs : false
}
