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
    const { random = { fraction: Math.random } } = this.#options
    const step = backoffStepMs(this.#options, this.#attempts)
    this.#attempts += 1
    return jittered(step, random)
  }

  reset(): void {
    this.#attempts = 0
  }
}

/** Returns the longest delay after that many attempts. */
export function backoffStepMs(
  { delayMsMin, delayMsMax }: Pick<BackoffOptions, 'delayMsMin' | 'delayMsMax'>,
  attempts: number,
): number {
  return Math.min(delayMsMax, delayMsMin * 2 ** Math.min(attempts, 30))
}

/** Returns a delay between half the step and the whole step. */
export function jittered(stepMs: number, random: Pick<Random, 'fraction'>): number {
  return stepMs / 2 + (random.fraction() * stepMs) / 2
}
