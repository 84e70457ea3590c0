/**
 * Turns at slots that groups share, for requests that wait for them.
 *
 * Owns: how long a request waits, and that none waits once this stops. Does not own: whose turn it is (fair-slots.ts).
 * Law: the waiting times of a request together are bounded, also if its work is ended for others and repeated.
 */
import type { Clock } from './clock.ts'
import { FairSlots } from './fair-slots.ts'

export type BoundedTurnsOptions = {
  /** Requests that are worked on at once. */
  readonly count: number
  /** How far a group may be ahead of one that waits. */
  readonly leadMsMax?: number
  readonly waitMs: number
  /** Returns what a request that waited too long is rejected with. */
  readonly tooLate: () => Error
  readonly clock: Clock
}

export class BoundedTurns {
  readonly #options: BoundedTurnsOptions
  readonly #slots: FairSlots
  readonly #stopping = new AbortController()
  #waiting = 0

  constructor(options: BoundedTurnsOptions) {
    const { count: capacity, leadMsMax, clock } = options
    this.#options = options
    this.#slots = new FairSlots({ capacity, clock, ...(leadMsMax !== undefined && { leadMsMax }) })
  }

  /** Requests without a turn. */
  get waiting(): number {
    return this.#waiting
  }

  /** Throws what the work throws, or the signal's reason. */
  async run<T>(group: string, signal: AbortSignal, work: (turn: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, waitMs, tooLate } = this.#options
    const deadline = clock.monotonic() + waitMs
    const late = new AbortController()
    const wait = () => {
      const cancel = clock.setTimer(() => late.abort(tooLate()), Math.max(0, deadline - clock.monotonic()))
      this.#waiting += 1
      return () => {
        cancel()
        this.#waiting -= 1
      }
    }
    let stopWaiting = wait()
    try {
      const ended = AbortSignal.any([signal, this.#stopping.signal, late.signal])
      return await this.#slots.run({ group, member: group, weight: 1 }, { signal: ended }, async (turn) => {
        stopWaiting()
        try {
          return await work(turn)
        } finally {
          stopWaiting = wait()
        }
      })
    } finally {
      stopWaiting()
    }
  }

  /** Rejects requests that wait, and aborts the work of the others. */
  stop(reason: Error): void {
    this.#stopping.abort(reason)
  }
}
