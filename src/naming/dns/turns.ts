import { type Clock, sleep } from '#lib/clock.ts'
import { Semaphore } from '#lib/semaphore.ts'

/** Runs functions one after another, each at least `intervalMs` after the one before began. */
export class Turns {
  readonly #intervalMs: number
  readonly #clock: Clock
  readonly #turn = new Semaphore(1)
  #nextMs = 0

  constructor(intervalMs: number, clock: Clock) {
    this.#intervalMs = intervalMs
    this.#clock = clock
  }

  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    using _turn = await this.#turn.acquire(1, signal)
    await sleep(this.#clock, Math.max(0, this.#nextMs - this.#clock.monotonic()), signal)
    signal.throwIfAborted()
    this.#nextMs = this.#clock.monotonic() + this.#intervalMs
    return await work()
  }
}
