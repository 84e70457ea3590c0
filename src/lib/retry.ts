import type { Random } from './random.ts'

export type BackoffOptions = {
  readonly delayMsMin: number
  readonly delayMsMax: number
  readonly random?: Pick<Random, 'fraction'>
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
    const { delayMsMin, delayMsMax, random = { fraction: Math.random } } = this.#options
    const step = Math.min(delayMsMax, delayMsMin * 2 ** Math.min(this.#attempts, 30))
    this.#attempts += 1
    return step / 2 + (random.fraction() * step) / 2
  }

  reset(): void {
    this.#attempts = 0
  }
}
