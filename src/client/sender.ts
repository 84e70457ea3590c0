/**
 * Sends requests, and repeats those that failed for a while.
 *
 * Owns: attempts, back-off, `Retry-After`. Does not own: credentials, and what a response means.
 * Law: a request that may have had an effect is repeated only if repeating it does no harm.
 */
import { Backoff } from '#lib/retry.ts'
import type { Bound } from './bound.ts'
import { ApiError, ConnectionError, errorOf, noResponse } from './errors.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export type SenderOptions = {
  readonly fetch: Fetch
  /** Attempts after the first one. */
  readonly retriesMax: number
}

export type OutgoingRequest = {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Whether a repetition does no harm if the first attempt had an effect. */
  readonly isRepeatable: boolean
}

const delays = { delayMsMin: 200, delayMsMax: 10_000 } as const

export class Sender {
  readonly #options: SenderOptions

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /** Returns the body of a success, undefined if it is empty. Throws an InletError, or the reason of the caller's signal. */
  async send(request: OutgoingRequest, bound: Bound): Promise<unknown> {
    const backoff = new Backoff(delays)
    let failure: unknown
    for (;;) {
      try {
        return await this.#attempt(request, bound.signal)
      } catch (error) {
        bound.throwIfOver(failure ?? error)
        // The first attempt deleted it, and its response was lost.
        if (request.method === 'DELETE' && failure instanceof ConnectionError && isNotFound(error)) return undefined
        if (!isWorthRepeating(error, request) || backoff.attempts >= this.#options.retriesMax) throw error
        failure = error
      }
      const askedMs = failure instanceof ApiError ? 1000 * (failure.retryAfterSeconds ?? 0) : 0
      const delayMs = Math.max(backoff.next(), askedMs)
      if (delayMs >= bound.remainingMs) throw failure
      await bound.pause(delayMs)
    }
  }

  async #attempt({ method, url, headers, body }: OutgoingRequest, signal: AbortSignal): Promise<unknown> {
    try {
      const init = { method, headers, signal, redirect: 'manual' as const, ...(body === undefined ? {} : { body }) }
      const response = await this.#options.fetch(url.href, init)
      if (!response.ok) throw await errorOf(response)
      return parse(await response.text(), response)
    } catch (error) {
      if (error instanceof ApiError) throw error
      throw noResponse(url, error)
    }
  }
}

function parse(text: string, { status, url }: Response): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    const detail = `the response of ${url} is not JSON: check that the address is that of Inlet`
    throw new ApiError({ status, code: 'unexpected_response', detail })
  }
}

function isWorthRepeating(error: unknown, { isRepeatable }: OutgoingRequest): boolean {
  if (error instanceof ConnectionError) return isRepeatable
  if (!(error instanceof ApiError)) return false
  // A quota that is used up does not change within a call, and a request above the rate was not looked at.
  if (error.status === 429) return error.code !== 'quota_exceeded'
  return error.status === 503 && isRepeatable
}

function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'not_found'
}
