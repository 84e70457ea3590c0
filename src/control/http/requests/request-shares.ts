import { AppError } from '#errors.ts'
import type { Principal } from '#model/principal.ts'

/** Requests of all accounts together. An account without one may always have one. */
const TOTAL_MAX = 32

export type RequestSharesOptions = {
  /** Operation named in the error, in the plural, such as `run previews`. */
  readonly what: string
  readonly perAccountMax: number
}

/**
 * Bounds requests whose bodies are held in memory until a process has time for them.
 *
 * Law: an account that is within its share is not refused because of one other account.
 */
export class RequestShares {
  readonly #options: RequestSharesOptions
  readonly #inFlight = new Map<string, number>()
  #total = 0

  constructor(options: RequestSharesOptions) {
    this.#options = options
  }

  /**
   * Reserves a slot. Call it before the body is read, and call the returned function when the request ends.
   * Throws too_many_requests and unavailable.
   */
  reserve({ account_id }: Principal): () => void {
    const { what, perAccountMax } = this.#options
    const inFlight = this.#inFlight.get(account_id) ?? 0
    if (inFlight >= perAccountMax) {
      throw new AppError('too_many_requests', `an account may ${what} in at most ${perAccountMax} requests at once`, {
        retryAfterSeconds: 1,
      })
    }
    if (this.#total >= TOTAL_MAX && inFlight > 0) {
      throw new AppError('unavailable', 'too many such requests are running: try again later', { retryAfterSeconds: 1 })
    }
    this.#total += 1
    this.#inFlight.set(account_id, inFlight + 1)
    return () => {
      this.#total -= 1
      const left = (this.#inFlight.get(account_id) ?? 1) - 1
      if (left === 0) this.#inFlight.delete(account_id)
      else this.#inFlight.set(account_id, left)
    }
  }
}
