export type BackoffOptions = {
  readonly delayMsMin: number
  readonly delayMsMax: number
  /** In [0, 1). Passed in so that tests can fix it. */
  readonly random?: () => number
}

/** Exponential back-off with jitter and a maximum. */
export class Backoff {
  readonly #options: BackoffOptions
  #attempts = 0

  constructor(options: BackoffOptions) {
    this.#options = options
  }

  /** Number of calls of `next` since the last `reset`. */
  get attempts(): number {
    return this.#attempts
  }

  /** Returns the milliseconds to wait before the next attempt: between half the step and the whole step. */
  next(): number {
    const { delayMsMin, delayMsMax, random = Math.random } = this.#options
    const step = Math.min(delayMsMax, delayMsMin * 2 ** Math.min(this.#attempts, 30))
    this.#attempts += 1
    return step / 2 + (random() * step) / 2
  }

  reset(): void {
    this.#attempts = 0
  }
}
