import { type Clock, sleep } from '#lib/clock.ts'

/** Spreads reading over time. A large part is paid for by waiting after it, so the average holds over any longer time. */
export class BytePace {
  readonly #bytesPerSecond: number
  readonly #clock: Clock
  /** On the monotonic clock: when everything read so far is paid for. */
  #paidAt = 0

  constructor({ bytesPerSecond, clock }: { readonly bytesPerSecond: number; readonly clock: Clock }) {
    this.#bytesPerSecond = bytesPerSecond
    this.#clock = clock
  }

  /** Resolves when so many bytes may have been read. Throws the signal's reason. */
  async spend(bytes: number, signal: AbortSignal): Promise<void> {
    const now = this.#clock.monotonic()
    this.#paidAt = Math.max(now, this.#paidAt) + (bytes / this.#bytesPerSecond) * 1000
    await sleep(this.#clock, this.#paidAt - now, signal)
    signal.throwIfAborted()
  }
}
